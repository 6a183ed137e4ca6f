package openapi

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// idFormat is the format of a resource's id in the contract.
const idFormat = "resource-id"

// timeFormat is the format of a timestamp.
const timeFormat = "date-time"

// scoreFormat is the format of a score written as text: a number from 0 to 10.
const scoreFormat = "score"

// MaxIDBytes is how long a resource's id may be.
const MaxIDBytes = 253

// valueKind is what a value is read as.
type valueKind int

const (
	textValue valueKind = iota
	integerValue
	decimalValue
	booleanValue
	idValue
	timeValue // RFC 3339
)

// scalar is the schema of a parameter, or of a member of a body. Requests need no other types.
type scalar struct {
	kind      valueKind
	enum      []string
	min, max  int64
	maxLength int // in characters; 0 is no limit
	byDefault string
	// emptyIsRefused means that an empty value is an error; otherwise it counts as not given. Only query parameters
	// have it.
	emptyIsRefused bool
	// alternative is the parameter beside which an empty value counts as not given all the same.
	alternative string
}

// newScalar refuses a schema that it cannot validate completely: either everything that the contract states about
// requests is enforced, or the service does not start.
func newScalar(ref *openapi3.SchemaRef) (scalar, error) {
	if ref == nil || ref.Value == nil {
		return scalar{}, fmt.Errorf("no schema")
	}
	schema := ref.Value
	s := scalar{min: math.MinInt64, max: math.MaxInt64}
	switch {
	case schema.Type.Is(openapi3.TypeInteger):
		s.kind = integerValue
	case schema.Type.Is(openapi3.TypeNumber) && schema.Min != nil && schema.Max != nil:
		s.kind = decimalValue
	case schema.Type.Is(openapi3.TypeBoolean):
		s.kind, s.enum = booleanValue, []string{"false", "true"}
	case schema.Type.Is(openapi3.TypeString):
	default:
		return scalar{}, fmt.Errorf("type %v is not supported for requests", schema.Type)
	}
	switch {
	case schema.Format == "":
	case !schema.Type.Is(openapi3.TypeString):
		return scalar{}, fmt.Errorf("format %q is supported for strings only", schema.Format)
	case schema.Format == idFormat:
		s.kind = idValue
	case schema.Format == timeFormat:
		s.kind = timeValue
	case schema.Format == scoreFormat:
		s.kind, s.min, s.max = decimalValue, 0, 10
	default:
		return scalar{}, fmt.Errorf("format %q is not supported for requests", schema.Format)
	}
	if schema.Pattern != "" || schema.MinLength != 0 || schema.MultipleOf != nil || schema.Const != nil ||
		schema.ExclusiveMin.IsSet() || schema.ExclusiveMax.IsSet() ||
		len(schema.OneOf)+len(schema.AnyOf)+len(schema.AllOf) > 0 || schema.Not != nil || schema.If != nil {
		return scalar{}, fmt.Errorf("a keyword of the schema is not supported for requests")
	}
	if schema.Min != nil {
		s.min = int64(*schema.Min)
	}
	if schema.Max != nil {
		s.max = int64(*schema.Max)
	}
	if schema.MaxLength != nil {
		s.maxLength = int(*schema.MaxLength) //nolint:gosec // a document of our own, in the thousands
	}
	for _, value := range schema.Enum {
		s.enum = append(s.enum, fmt.Sprint(value))
	}
	if schema.Default != nil {
		s.byDefault = fmt.Sprint(schema.Default)
	}
	return s, nil
}

// typeName returns the name of the value's type in a body.
func (s scalar) typeName() string {
	if s.kind == booleanValue {
		return "boolean"
	}
	return "string"
}

// read returns the value in its canonical spelling, so that cursors treat different spellings of a filter as
// the same. Its error begins with name and is safe to show to a client.
func (s scalar) read(name, value string) (string, error) {
	switch s.kind {
	case timeValue:
		return readTime(name, value)
	case decimalValue:
		return s.readNumber(name, value)
	default:
		return value, s.check(name, value)
	}
}

func (s scalar) check(name, value string) error {
	switch {
	case s.kind == integerValue:
		return s.checkInteger(name, value)
	case s.kind == idValue:
		return checkID(name, value)
	case !utf8.ValidString(value):
		return fmt.Errorf("%s must be valid UTF-8", name)
	case s.enum != nil && !slices.Contains(s.enum, value):
		return fmt.Errorf("%s must be one of %s", name, strings.Join(s.enum, ", "))
	case s.maxLength > 0 && utf8.RuneCountInString(value) > s.maxLength:
		return fmt.Errorf("%s must be at most %d characters", name, s.maxLength)
	}
	return nil
}

func (s scalar) checkInteger(name, value string) error {
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil || strconv.FormatInt(number, 10) != value || number < s.min || number > s.max {
		return fmt.Errorf("%s must be an integer from %d to %d", name, s.min, s.max)
	}
	return nil
}

// decimal matches a number written with digits and at most one point.
var decimal = regexp.MustCompile(`^[0-9]{1,10}(\.[0-9]{1,10})?$`)

// readNumber returns the number without redundant zeros.
func (s scalar) readNumber(name, value string) (string, error) {
	number, err := strconv.ParseFloat(value, 64)
	if err != nil || !decimal.MatchString(value) || number < float64(s.min) || number > float64(s.max) {
		return "", fmt.Errorf("%s must be a number from %d to %d, such as 7.5", name, s.min, s.max)
	}
	return strconv.FormatFloat(number, 'f', -1, 64), nil
}

// readTime returns the instant in UTC. The grammar is the same as in resources.
func readTime(name, value string) (string, error) {
	at, err := v1alpha1.ParseTime(value)
	switch {
	case err == nil:
		return at.UTC().Format(time.RFC3339Nano), nil
	case isLeapSecond(value):
		return "", fmt.Errorf("%s must have seconds from 00 to 59; a leap second is not accepted", name)
	default:
		return "", fmt.Errorf("%s must be a date-time of RFC 3339 such as 2026-03-01T08:30:00Z, "+
			"in the years 0001 to 9999 in UTC; a plus sign is written %%2B", name)
	}
}

// isLeapSecond reports whether the text would be a valid time if its second were not 60.
func isLeapSecond(value string) bool {
	const seconds = len("2006-01-02T15:04:")
	if len(value) < seconds+2 || value[seconds:seconds+2] != "60" {
		return false
	}
	_, err := v1alpha1.ParseTime(value[:seconds] + "59" + value[seconds+2:])
	return err == nil
}

// checkID refuses a value that can never be an id; any other unknown id is simply not found.
func checkID(name, value string) error {
	switch {
	case len(value) > MaxIDBytes:
		return fmt.Errorf("%s must be at most %d bytes", name, MaxIDBytes)
	case !utf8.ValidString(value):
		return fmt.Errorf("%s must be valid UTF-8", name)
	case strings.ContainsFunc(value, unicode.IsControl):
		return fmt.Errorf("%s must hold no control characters", name)
	}
	return nil
}

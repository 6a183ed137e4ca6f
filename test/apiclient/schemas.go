package apiclient

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// schemas compiles each schema of the contract once. openapi3filter compiles the schemas of an answer's headers and
// body again for each answer, which takes more time than most requests.
var schemas = sync.OnceValues(func() (*compiled, error) {
	content, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	return &compiled{compiler: compiler}, compiler.AddResource(contractURL, document)
})

const contractURL = "https://contract.example/openapi.json"

type compiled struct {
	// mutex guards the compiler, which keeps what it has compiled.
	mutex    sync.Mutex
	compiler *jsonschema.Compiler
}

// at returns the schema at a place in the contract, for example "#/components/schemas/Error".
func (c *compiled) at(place string) (*jsonschema.Schema, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.compiler.Compile(contractURL + place)
}

// check validates a value against the schema at a place in the contract.
func check(place string, value any) error {
	all, err := schemas()
	if err != nil {
		return err
	}
	schema, err := all.at(place)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func checkBody(place string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return check(place, value)
}

// checkResponse compares an answer's status, headers and body with what the contract describes for the route.
func checkResponse(route *routers.Route, answer *Answer) error {
	status := strconv.Itoa(answer.Status)
	described := route.Operation.Responses.Status(answer.Status)
	if described == nil {
		return fmt.Errorf("the contract describes no status %s", status)
	}
	place := placeOf(described.Ref, "#/paths", route.Path, strings.ToLower(route.Method), "responses", status)
	for name, header := range described.Value.Headers {
		if err := checkHeader(placeOf(header.Ref, place, "headers", name), header.Value, answer.Header, name); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	if len(described.Value.Content) == 0 {
		return nil
	}
	media := answer.Header.Get("Content-Type")
	content := described.Value.Content.Get(media) // also finds it with parameters or in a wildcard
	if content == nil {
		return fmt.Errorf("the contract describes no Content-Type %q", media)
	}
	for key, value := range described.Value.Content {
		if value == content && content.Schema != nil && strings.HasSuffix(key, "json") {
			return checkBody(placeOf("", place, "content", key, "schema"), answer.Body)
		}
	}
	return nil
}

func checkHeader(place string, described *openapi3.Header, headers http.Header, name string) error {
	values := headers[http.CanonicalHeaderKey(name)]
	switch {
	case len(values) == 0 && described.Required:
		return errors.New("it is missing")
	case len(values) == 0:
		return nil
	}
	schema := place + "/schema"
	if described.Schema.Value.Type.Is(openapi3.TypeString) {
		return check(schema, values[0])
	}
	return checkBody(schema, []byte(values[0]))
}

// placeOf returns the reference if there is one, and else the place below another one.
func placeOf(reference, parent string, names ...string) string {
	if reference != "" {
		return reference
	}
	for _, name := range names {
		escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		parent += "/" + url.PathEscape(escaped)
	}
	return parent
}

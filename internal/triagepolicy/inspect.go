package triagepolicy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zones of its own

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// maxConcatenations bounds the concatenations of lists in an expression. Each slows down every access to an item of the
// resulting list, which CEL's cost does not cover.
const maxConcatenations = 16

// amplifiers are functions that make long texts from short ones. Conditions do not need them.
var amplifiers = map[string]bool{"replace": true, "join": true, "format": true, "strings.quote": true}

// offset is a time zone without a name.
var offset = regexp.MustCompile(`^[+-]?\d{1,2}:[0-5]\d$`)

// inspect reports whether the expression reads now, and refuses what may take far longer than its cost in CEL's
// units.
func inspect(compiled *ast.AST) (usesNow bool, err error) {
	i := &inspector{compiled: compiled}
	ast.PreOrderVisit(compiled.Expr(), ast.NewExprVisitor(i.visit))
	return i.usesNow, i.refused
}

// inspector visits the parts of an expression.
type inspector struct {
	compiled       *ast.AST
	usesNow        bool
	concatenations int
	refused        error
}

func (i *inspector) visit(e ast.Expr) {
	if isUnknown(i.typeOf(e)) {
		i.refuse(e, "a value has no definite type: leave out dyn and empty lists, and do not mix types in a list or map")
	}
	switch e.Kind() {
	case ast.IdentKind:
		i.usesNow = i.usesNow || e.AsIdent() == nowName
	case ast.CallKind:
		i.visitCall(e, e.AsCall())
	}
}

func (i *inspector) visitCall(e ast.Expr, call ast.CallExpr) {
	name, arguments := call.FunctionName(), call.Args()
	switch {
	case amplifiers[name]:
		i.refuse(e, "the function %s is not available", name)
	case isEquality(name) && isNested(i.typeOf(arguments[0])),
		name == operators.In && isCollection(i.typeOf(arguments[0])),
		name == operators.Index && isCollection(i.typeOf(arguments[1])):
		// CEL counts the items of the outer list alone.
		i.refuse(e, "lists and maps within lists or maps cannot be compared: compare texts, such as "+
			"finding.ruleID + ' ' + finding.path in ['G101 cmd/a.go']")
	case name == operators.Add && isCollection(i.typeOf(e)) && !isAccumulator(arguments[0]):
		if i.concatenations++; i.concatenations > maxConcatenations {
			i.refuse(e, "the expression may concatenate lists %d times at most", maxConcatenations)
		}
	case isInZone(name, len(arguments), call.IsMemberFunction()):
		i.visitZone(arguments[0])
	}
}

// visitZone refuses time zones that are unknown, or differ between machines.
func (i *inspector) visitZone(e ast.Expr) {
	zone, literal := literalText(e)
	if !literal {
		i.refuse(e, "the time zone must be a literal")
		return
	}
	if _, err := time.LoadLocation(zone); zone == "Local" || err != nil && !offset.MatchString(zone) {
		i.refuse(e, "unknown time zone: write a name such as 'Europe/Berlin', or an offset such as '+02:00'")
	}
}

// refuse records the first error.
func (i *inspector) refuse(e ast.Expr, format string, arguments ...any) {
	if i.refused == nil {
		i.refused = errorAt(i.compiled, e, format, arguments...)
	}
}

// errorAt returns an error about a part of the expression. The place of a call is its parenthesis or operator.
func errorAt(of *ast.AST, e ast.Expr, format string, arguments ...any) *CompileError {
	at := of.SourceInfo().GetStartLocation(e.ID())
	return &CompileError{
		Line: at.Line(), Column: max(0, at.Column()) + 1, Message: fmt.Sprintf(format, arguments...),
	}
}

// typeOf returns the type of a part; nil if it has none.
func (i *inspector) typeOf(e ast.Expr) *types.Type { return i.compiled.TypeMap()[e.ID()] }

// isUnknown reports whether a value of the type may be, or contain, a value of any type.
func isUnknown(t *types.Type) bool {
	if t == nil || t.Kind() == types.TypeKind {
		return false
	}
	return t.Kind() == types.DynKind || t.Kind() == types.AnyKind || slices.ContainsFunc(t.Parameters(), isUnknown)
}

func isCollection(t *types.Type) bool {
	return t != nil && (t.Kind() == types.ListKind || t.Kind() == types.MapKind)
}

func isNested(t *types.Type) bool {
	return isCollection(t) && slices.ContainsFunc(t.Parameters(), isCollection)
}

func isEquality(function string) bool {
	return function == operators.Equals || function == operators.NotEquals
}

func isComparison(function string) bool {
	switch function {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return true
	}
	return isEquality(function)
}

// isAccumulator reports whether it is the list to which a macro appends.
func isAccumulator(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == parser.HiddenAccumulatorName
}

// isInZone reports whether the call takes a timestamp apart in a time zone. The arguments do not include the target.
func isInZone(function string, arguments int, hasTarget bool) bool {
	return hasTarget && arguments == 1 && strings.HasPrefix(function, "get")
}

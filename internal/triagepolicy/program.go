// Package triagepolicy evaluates TriagePolicies over findings.
//
// It is pure: a compiled expression reads only the given facts and time. The cost of an expression is bounded before
// it runs, by an estimate for the largest possible inputs, and while it runs.
package triagepolicy

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	"github.com/appsec-dev/findings-operator/internal/truncate"
)

const (
	// maxCost bounds the cost of evaluating an expression for one finding, in CEL's units: a few milliseconds.
	maxCost = 50_000
	// maxCostTogether bounds the total cost of the policies in force for one finding: once it is used up, the
	// remaining policies are not evaluated.
	maxCostTogether = 2 * maxCost
	// maxExpression is the maximum length of an expression, in characters; the schema has the same
	// bound.
	maxExpression = 4096
	// maxDepth bounds the recursion of the parser.
	maxDepth = 64
	// maxMessage is the maximum length of a failure's message in a status, in characters.
	maxMessage = 256
	// stringsVersion pins the version of the string functions, so that expressions still compile with a
	// later library.
	stringsVersion = 5
)

// CompileError is an error in an expression, with its position.
type CompileError struct {
	// Line and Column count from 1; 0 means the whole expression.
	Line, Column int
	Message      string
}

// Error returns the message, preceded by the position.
func (e *CompileError) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	program cel.Program
	usesNow bool
	// parts is the number of parts of its compiled regular expressions.
	parts int
}

// environment is the CEL environment of all expressions.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeProvider(provider{registry}), cel.CustomTypeAdapter(registry),
		cel.Variable(nowName, cel.TimestampType),
		ext.Strings(ext.StringsVersion(stringsVersion)),
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxDepth),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateComprehensionNestingLimit(2)),
	}
	for name, kind := range roots {
		options = append(options, cel.Variable(name, kind.typ))
	}
	return cel.NewEnv(options...)
})

const nowName = "now"

// Compile compiles an expression. The error is a *CompileError if the expression is at fault.
func Compile(match string) (*Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	parsed, issues := env.Parse(match)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	known, parts, err := patternsOf(parsed.NativeRep())
	if err != nil {
		return nil, err
	}
	compiled, issues := env.Check(parsed)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	if compiled.OutputType() != cel.BoolType {
		return nil, &CompileError{Message: fmt.Sprintf("the expression must return a bool and returns a value of type %s",
			cel.FormatCELType(compiled.OutputType()))}
	}
	usesNow, err := inspect(compiled.NativeRep())
	if err != nil {
		return nil, err
	}
	if err := affordable(env, compiled, known); err != nil {
		return nil, err
	}
	program, err := env.Program(compiled, cel.CostTracking(prices{patterns: known}), cel.CostLimit(maxCost),
		cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, &CompileError{Message: err.Error()}
	}
	return &Program{program: program, usesNow: usesNow, parts: parts}, nil
}

// affordable refuses an expression that may cost more than maxCost.
func affordable(env *cel.Env, compiled *cel.Ast, known patterns) error {
	var tooLong ast.Expr
	cost, err := env.EstimateCost(compiled, sizes{prices{known, &tooLong}})
	switch {
	case err != nil:
		return &CompileError{Message: fmt.Sprintf("the cost of the expression cannot be estimated: %v", err)}
	case tooLong != nil:
		return errorAt(compiled.NativeRep(), sumOf(compiled.NativeRep(), tooLong),
			"texts put together may be longer than %d characters: compare the parts", maxText)
	case cost.Max > maxCost:
		return &CompileError{Message: fmt.Sprintf(
			"the expression may cost too much for one finding: %s, and the limit is %d", costly(cost.Max), maxCost)}
	}
	return nil
}

// sumOf returns the + with this second operand.
func sumOf(compiled *ast.AST, operand ast.Expr) ast.Expr {
	sum := operand
	ast.PreOrderVisit(compiled.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		if of := e.AsCall().Args(); len(of) == 2 && of[1].ID() == operand.ID() {
			sum = e
		}
	}))
	return sum
}

// Footprint estimates the memory of an expression and its program, in bytes; program is nil if it does not compile:
// about 100 per character, and up to 160 per part of its patterns.
func Footprint(match string, program *Program) int {
	const perText, perCharacter, perProgram, perPart = 512, 100, 8 << 10, 160
	bytes := perText + len(match)
	if program == nil {
		return bytes
	}
	return bytes + perProgram + perCharacter*len(match) + perPart*program.parts
}

// UsesNow reports whether the expression depends on the time.
func (p *Program) UsesNow() bool { return p.usesNow }

// Matches evaluates the expression.
func (p *Program) Matches(facts *Facts, now time.Time) (bool, error) {
	matched, _, err := p.evaluate(facts, now)
	return matched, err
}

// evaluate also returns the cost of the evaluation.
func (p *Program) evaluate(facts *Facts, now time.Time) (is bool, cost uint64, err error) {
	result, details, err := p.program.Eval(variables{facts, now})
	if spent := details.ActualCost(); spent != nil {
		cost = *spent
	}
	if err != nil {
		return false, cost, err
	}
	matched, isBool := result.(types.Bool)
	if !isBool {
		return false, cost, fmt.Errorf("the expression returned %v instead of a bool", result.Type())
	}
	return bool(matched), cost, nil
}

// Failure returns the error's message, truncated to fit a status.
func Failure(err error) string {
	return truncate.To(strings.ToValidUTF8(err.Error(), "�"), maxMessage)
}

func firstOf(issues *cel.Issues) error {
	if issues == nil || issues.Err() == nil {
		return nil
	}
	for _, e := range issues.Errors() {
		return &CompileError{Line: e.Location.Line(), Column: max(0, e.Location.Column()) + 1, Message: e.Message}
	}
	return &CompileError{Message: issues.Err().Error()}
}

func costly(cost uint64) string {
	if cost > 1_000_000_000 {
		return "there is no bound"
	}
	return fmt.Sprintf("%d units", cost)
}

// variables is the activation of one evaluation.
type variables struct {
	facts *Facts
	now   time.Time
}

// ResolveName returns the variable of that name.
func (v variables) ResolveName(name string) (any, bool) {
	if name == nowName {
		return types.Timestamp{Time: v.now.UTC()}, true // else string(now) would be in the zone of the machine
	}
	kind, known := roots[name]
	if !known {
		return nil, false
	}
	return &object{kind: kind, facts: v.facts}, true
}

// Parent returns nil: there are no further variables.
func (variables) Parent() cel.Activation { return nil }

// sizes provides the cost estimate with the maximum length of the facts, and the prices of calls.
type sizes struct{ prices }

// EstimateSize returns the bound of a member in the schema.
func (sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	k := roots[path[0]]
	for i := 1; k != nil && i < len(path); i++ {
		m := k.members[path[i]]
		switch rest := path[i+1:]; {
		case len(rest) == 0 && m.size > 0:
			return &checker.SizeEstimate{Max: m.size}
		case len(rest) == 1 && rest[0] == "@items" && m.each > 0:
			return &checker.SizeEstimate{Max: m.each}
		}
		k = kinds[m.typ.TypeName()]
	}
	return nil
}

// IsCompileError reports whether the error is a CompileError, and returns it.
func IsCompileError(err error) (*CompileError, bool) {
	return errors.AsType[*CompileError](err)
}

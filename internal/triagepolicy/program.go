// Package triagepolicy decides what TriagePolicies say about a finding.
//
// It is pure: an expression is compiled once, and what is evaluated reads facts and the time that it is given. What an
// expression may cost is bounded before it runs, by what its inputs can be at most, and while it runs.
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
)

const (
	// MaxCost is what the evaluation of an expression may cost for one finding, in CEL's units: some milliseconds.
	MaxCost = 50_000
	// MaxCostTogether is what the policies in force may cost for one finding: once those that come first have used it
	// up, those after are not evaluated for it.
	MaxCostTogether = 2 * MaxCost
	// maxExpression is how long an expression may be, in characters; the schema has the same bound.
	maxExpression = 4096
	// maxDepth is how deep the parser goes.
	maxDepth = 64
	// maxMessage is what a failure's message may take in a status, in characters.
	maxMessage = 256
	// stringsVersion is that of the string functions: what compiles today compiles with a later library too.
	stringsVersion = 5
)

// amplifiers make long texts of short ones. No expression that only asks needs them.
var amplifiers = map[string]bool{"replace": true, "join": true, "format": true, "strings.quote": true}

// CompileError says what is wrong with an expression, and where.
type CompileError struct {
	// Line and Column count from 1. 0: the expression as a whole.
	Line, Column int
	Message      string
}

// Error has the place first.
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
	// patterned: it holds compiled regular expressions.
	patterned bool
}

// environment is what all expressions are compiled in.
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
	known, err := patternsOf(parsed.NativeRep())
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
	cost, err := env.EstimateCost(compiled, sizes{known})
	if err != nil {
		return nil, &CompileError{Message: fmt.Sprintf("the cost of the expression cannot be told: %v", err)}
	}
	if cost.Max > MaxCost {
		return nil, &CompileError{Message: fmt.Sprintf(
			"the expression may cost too much for one finding: %s, and the limit is %d", costly(cost.Max), MaxCost)}
	}
	program, err := env.Program(compiled, cel.CostTracking(known), cel.CostLimit(MaxCost),
		cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, &CompileError{Message: err.Error()}
	}
	return &Program{program: program, usesNow: usesNow, patterned: len(known) > 0}, nil
}

// Footprint is about how many bytes of memory an expression takes with its program, which is nil where it is wrong:
// some hundred for each character, and some sixty for each part of its patterns, of which there are at most
// maxPattern.
func Footprint(match string, program *Program) int {
	const perText, perCharacter, perProgram, perPart = 512, 100, 4 << 10, 64
	bytes := perText + len(match)
	if program == nil {
		return bytes
	}
	bytes += perProgram + perCharacter*len(match)
	if program.patterned {
		bytes += perPart * maxPattern
	}
	return bytes
}

// UsesNow reports whether the expression depends on the time.
func (p *Program) UsesNow() bool { return p.usesNow }

// Matches evaluates the expression.
func (p *Program) Matches(facts *Facts, now time.Time) (bool, error) {
	matched, _, err := p.evaluate(facts, now)
	return matched, err
}

// evaluate returns also what the evaluation has cost.
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

// Failure is the error's message as a status has room for it.
func Failure(err error) string {
	message := []rune(strings.ToValidUTF8(err.Error(), "�"))
	return string(message[:min(len(message), maxMessage)])
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

// inspect reports whether the expression reads now, and refuses what makes long texts of short ones.
func inspect(compiled *ast.AST) (usesNow bool, err error) {
	var refused []error
	ast.PreOrderVisit(compiled.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			usesNow = usesNow || e.AsIdent() == nowName
		case ast.CallKind:
			if name := e.AsCall().FunctionName(); amplifiers[name] {
				at := compiled.SourceInfo().GetStartLocation(e.ID()) // of the parenthesis
				refused = append(refused, &CompileError{
					Line: at.Line(), Column: at.Column() + 1, Message: fmt.Sprintf("the function %s is not available", name),
				})
			}
		}
	}))
	if len(refused) > 0 {
		return false, refused[0]
	}
	return usesNow, nil
}

func costly(cost uint64) string {
	if cost > 1_000_000_000 {
		return "there is no bound"
	}
	return fmt.Sprintf("%d units", cost)
}

// variables are the activation of one evaluation.
type variables struct {
	facts *Facts
	now   time.Time
}

// ResolveName returns the variable of that name.
func (v variables) ResolveName(name string) (any, bool) {
	if name == nowName {
		return types.Timestamp{Time: v.now}, true
	}
	kind, known := roots[name]
	if !known {
		return nil, false
	}
	return &object{kind: kind, facts: v.facts}, true
}

// Parent returns nil: there are no further variables.
func (variables) Parent() cel.Activation { return nil }

// sizes tells the estimate how long the facts can be, and how large the patterns are.
type sizes struct{ patterns }

// EstimateSize returns the bound of a member's schema.
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
		k = kinds[m.typeName()]
	}
	return nil
}

func (m member) typeName() string {
	if m.typ == nil {
		return ""
	}
	return m.typ.TypeName()
}

// IsCompileError reports whether the expression is at fault, and how.
func IsCompileError(err error) (*CompileError, bool) {
	var wrong *CompileError
	return wrong, errors.As(err, &wrong)
}

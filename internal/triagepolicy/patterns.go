package triagepolicy

import (
	"math"
	"regexp/syntax"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxPattern bounds the total size of an expression's regular expressions, with repetitions expanded. CEL only
// considers their length: "(.{0,1000}){9}" is short, but takes seconds and megabytes.
const maxPattern = 1000

// functionMatches is the name of the one function that takes a regular expression.
const functionMatches = "matches"

// patterns holds the sizes of an expression's regular expressions. The size is the cost of one step through a text:
// each part may have to be checked for each character.
type patterns map[string]uint64

// cost returns the actual cost of a match; nil if it cannot be evaluated.
func (p patterns) cost(arguments []ref.Val) *uint64 {
	if len(arguments) != 2 {
		return nil
	}
	text, sized := arguments[0].(traits.Sizer)
	pattern, known := arguments[1].(types.String)
	if !sized || !known {
		return nil
	}
	length, _ := text.Size().(types.Int)
	cost := uint64(math.Ceil(float64(length+1)*common.StringTraversalCostFactor)) * p[string(pattern)]
	return &cost
}

// estimate returns the estimated cost of a match. The last of the arguments, which include the target, is the pattern.
func (p patterns) estimate(arguments []checker.AstNode) *checker.CallEstimate {
	pattern, _ := literalText(arguments[len(arguments)-1].Expr())
	length := sizeOfNode(arguments[0]).Add(checker.SizeEstimate{Min: 1, Max: 1})
	steps := length.MultiplyByCostFactor(common.StringTraversalCostFactor)
	return &checker.CallEstimate{CostEstimate: steps.Multiply(checker.CostEstimate{Min: p[pattern], Max: p[pattern]})}
}

// patternsOf returns the sizes of the patterns, and their sum: a pattern that occurs twice is compiled twice. It
// refuses patterns that are too large, and those that are not literals.
func patternsOf(parsed *ast.AST) (found patterns, total int, err error) {
	found = patterns{}
	refuse := func(e ast.Expr, format string, arguments ...any) {
		if err == nil {
			err = errorAt(parsed, e, format, arguments...)
		}
	}
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != functionMatches {
			return
		}
		arguments := e.AsCall().Args()
		if len(arguments) == 0 {
			return // the type checker will refuse it
		}
		pattern, literal := literalText(arguments[len(arguments)-1])
		if !literal {
			refuse(e, "the pattern of matches must be a literal")
			return
		}
		// An invalid regular expression is refused later, with a better message.
		parsed, wrong := syntax.Parse(pattern, syntax.Perl)
		if wrong != nil {
			return
		}
		size := sizeOf(parsed)
		found[pattern] = uint64(size)
		if total += size; total > maxPattern {
			refuse(e, "the patterns of matches are too large: with their repetitions they have more than %d parts", maxPattern)
		}
	}))
	return found, total, err
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, is := e.AsLiteral().(types.String)
	return string(text), is
}

// sizeOf counts the parts of a pattern, each as often as it is repeated. Above maxPattern it may stop counting
// early.
func sizeOf(re *syntax.Regexp) int {
	size := max(1, len(re.Rune))
	for _, sub := range re.Sub {
		if size += sizeOf(sub); size > maxPattern {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min, re.Max)
	}
	return size
}

package triagepolicy

import (
	"fmt"
	"regexp/syntax"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// maxPattern is how large a regular expression may be once its repetitions are written out. CEL's cost knows only how
// long it is: "(.{0,1000}){9}" is short, and takes seconds and megabytes.
const maxPattern = 1000

// checkPatterns refuses patterns that are too large, and those that are not known before the evaluation.
func checkPatterns(parsed *ast.AST) (err error) {
	refuse := func(e ast.Expr, format string, arguments ...any) {
		if err == nil {
			at := parsed.SourceInfo().GetStartLocation(e.ID())
			err = &CompileError{Line: at.Line(), Column: at.Column() + 1, Message: fmt.Sprintf(format, arguments...)}
		}
	}
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "matches" {
			return
		}
		arguments := e.AsCall().Args()
		if len(arguments) == 0 {
			return // which the type checker refuses
		}
		pattern, literal := literalText(arguments[len(arguments)-1])
		if !literal {
			refuse(e, "the pattern of matches must be a literal")
			return
		}
		// What is no regular expression is refused later, in better words.
		if parsed, wrong := syntax.Parse(pattern, syntax.Perl); wrong == nil && sizeOf(parsed) > maxPattern {
			refuse(e, "the pattern of matches is too large: with its repetitions it has more than %d parts", maxPattern)
		}
	}))
	return err
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, is := e.AsLiteral().(types.String)
	return string(text), is
}

// sizeOf counts the parts of a pattern, each as often as it is repeated; beyond maxPattern it may count too few.
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

package conditions_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A message is one or more sentences: it begins with a capital letter and ends with a full stop. It
// may contain a quoted name or words from the object, but no number or time, because a message
// changes only when its meaning does.
var (
	sentence   = regexp.MustCompile(`^[A-Z].*\.$`)
	verb       = regexp.MustCompile(`%[^%]`)
	permitted  = regexp.MustCompile(`%[qs]`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	changeable = regexp.MustCompile(`\d`)
)

// Every message that a controller could set is checked in its source, including rare ones.
func TestMessagesInTheSourceAreSentences(t *testing.T) {
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			source := newSource(parse(t, "controllers", strings.ToLower(kind)))
			messages := source.messages()
			if len(messages) == 0 {
				t.Fatal("sets no message that this test can find")
			}
			for _, message := range messages {
				if !sentence.MatchString(message) {
					t.Errorf("%q is no sentence with a full stop", message)
				}
				for _, used := range verb.FindAllString(message, -1) {
					if !permitted.MatchString(used) {
						t.Errorf("%q takes a %s: only names and words stay the same", message, used)
					}
				}
			}
			t.Logf("%s:\n  %s", filepath.Join("controllers", strings.ToLower(kind)), strings.Join(messages, "\n  "))
		})
	}
}

// checkMessage checks a message that a controller has set.
func checkMessage(t *testing.T, what, message string) {
	t.Helper()
	if !sentence.MatchString(message) {
		t.Errorf("%s says %q, which is no sentence with a full stop", what, message)
	}
	if changeable.MatchString(quoted.ReplaceAllString(message, "")) {
		t.Errorf("%s says %q: a number outside a quoted name changes without a change of meaning", what, message)
	}
}

// source is a package in which the possible texts of an expression are looked up. It follows
// constants, variables and parameters within the package, by name only: if a name is used twice,
// the texts of both are included.
type source struct {
	files    []*ast.File
	assigned map[string][]ast.Expr
	calls    map[string][]*ast.CallExpr
	// parameters maps a parameter's object to its function and its position.
	parameters map[*ast.Object]parameter //nolint:staticcheck // resolution within a file is all that is needed
}

type parameter struct {
	function string
	place    int
}

func newSource(files []*ast.File) *source {
	s := &source{
		files:    files,
		assigned: map[string][]ast.Expr{}, calls: map[string][]*ast.CallExpr{},
		parameters: map[*ast.Object]parameter{}, //nolint:staticcheck // as above
	}
	s.each(func(node ast.Node) {
		switch node := node.(type) {
		case *ast.ValueSpec:
			for i, value := range node.Values {
				s.assigned[node.Names[i].Name] = append(s.assigned[node.Names[i].Name], value)
			}
		case *ast.AssignStmt:
			s.noteAssignment(node)
		case *ast.CallExpr:
			s.calls[called(node)] = append(s.calls[called(node)], node)
		case *ast.FuncDecl:
			s.noteParameters(node)
		case *ast.CompositeLit:
			s.noteElements(node)
		}
	})
	return s
}

func (s *source) each(look func(ast.Node)) {
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if node != nil {
				look(node)
			}
			return true
		})
	}
}

// called returns the name of the function or method.
func called(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		if from, is := function.X.(*ast.Ident); is && (from.Name == "conditions" || from.Name == "fmt") {
			return from.Name + "." + function.Sel.Name
		}
		return function.Sel.Name
	}
	return ""
}

func (s *source) noteAssignment(statement *ast.AssignStmt) {
	if len(statement.Lhs) != len(statement.Rhs) || statement.Tok == token.ADD_ASSIGN {
		return
	}
	for i, left := range statement.Lhs {
		if name, is := left.(*ast.Ident); is {
			s.assigned[name.Name] = append(s.assigned[name.Name], statement.Rhs[i])
		}
	}
}

func (s *source) noteParameters(function *ast.FuncDecl) {
	place := 0
	for _, field := range function.Type.Params.List {
		for _, name := range field.Names {
			s.parameters[name.Obj] = parameter{function.Name.Name, place}
			place++
		}
	}
}

// noteElements records the texts in tables such as that of a removal: {&v1alpha1.Scan{}, "..."}.
func (s *source) noteElements(literal *ast.CompositeLit) {
	if literal.Type != nil {
		return
	}
	for _, element := range literal.Elts {
		if text, is := element.(*ast.BasicLit); is && text.Kind == token.STRING {
			s.assigned["message"] = append(s.assigned["message"], text)
		}
	}
}

// messages returns the messages of every verdict and of every condition that the package creates.
func (s *source) messages() []string {
	var out []string
	s.each(func(node ast.Node) {
		switch node := node.(type) {
		case *ast.CallExpr:
			switch called(node) { // the last argument is the message
			case "conditions.Ready", "conditions.NotReady", "conditions.Stalled", "JudgeByRepository", "Condition":
				out = append(out, s.texts(node.Args[len(node.Args)-1])...)
			}
		case *ast.CompositeLit:
			if selector, is := node.Type.(*ast.SelectorExpr); is && (selector.Sel.Name == "Verdict" || selector.Sel.Name == "Condition") {
				out = append(out, s.member(node, "Message")...)
			}
		}
	})
	return out
}

func (s *source) member(literal *ast.CompositeLit, name string) []string {
	for _, element := range literal.Elts {
		pair, is := element.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		if key, is := pair.Key.(*ast.Ident); is && key.Name == name {
			return s.texts(pair.Value)
		}
	}
	return nil
}

// texts returns the possible texts of the expression: a format is returned unchanged, and an
// expression that it cannot follow yields "%v", which no message may contain.
func (s *source) texts(expression ast.Expr) []string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return []string{text}
		}
	case *ast.BinaryExpr:
		var out []string
		for _, left := range s.texts(e.X) {
			for _, right := range s.texts(e.Y) {
				out = append(out, left+right)
			}
		}
		return out
	case *ast.CallExpr:
		if called(e) == "fmt.Sprintf" {
			return s.texts(e.Args[0])
		}
	case *ast.SelectorExpr:
		if from, is := e.X.(*ast.Ident); is && from.Name == "v1alpha1" {
			return []string{"a constant"}
		}
		return s.assignedTo(e.Sel.Name)
	case *ast.Ident:
		if p, is := s.parameters[e.Obj]; is {
			return s.arguments(p)
		}
		return s.assignedTo(e.Name)
	}
	return []string{"%v"}
}

func (s *source) arguments(p parameter) []string {
	var out []string
	for _, call := range s.calls[p.function] {
		out = append(out, s.texts(call.Args[p.place])...)
	}
	return out
}

func (s *source) assignedTo(name string) []string {
	var out []string
	for _, value := range s.assigned[name] {
		out = append(out, s.texts(value)...)
	}
	if len(out) == 0 {
		return []string{"%v"}
	}
	return out
}

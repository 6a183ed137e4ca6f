package triagepolicy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Facts holds what an expression can read about one finding. Project and Repository may be nil: then their members
// are empty.
type Facts struct {
	Finding    *v1alpha1.Finding
	Project    *v1alpha1.Project
	Repository *v1alpha1.Repository
}

// member is a member that expressions can name.
type member struct {
	typ *cel.Type
	// get returns the value; nil if it is not set. Unset texts and lists are empty instead.
	get func(*Facts) ref.Val
	// size bounds a text's characters or a list's items, each bounds the characters of a list's items.
	size, each uint64
}

// kind is a type that expressions know: its name and members.
type kind struct {
	name    string
	typ     *cel.Type
	members map[string]member
}

func newKind(name string, members map[string]member) *kind {
	return &kind{name: name, typ: cel.ObjectType(name), members: members}
}

// text returns a text member of at most size characters, the schema's bound.
func text(size uint64, get func(*Facts) string) member {
	return member{typ: cel.StringType, size: size, get: func(f *Facts) ref.Val { return types.String(get(f)) }}
}

// within returns a member that is an object with its own members, read from the same facts.
func within(k *kind) member {
	return member{typ: k.typ, get: func(f *Facts) ref.Val { return &object{kind: k, facts: f} }}
}

var vulnerabilityKind = newKind("Vulnerability", map[string]member{
	"id": text(128, func(f *Facts) string { return valueOf(f.Finding.Spec.Vulnerability).ID }),
	"aliases": {typ: cel.ListType(cel.StringType), size: 8, each: 128, get: func(f *Facts) ref.Val {
		return types.NewStringList(types.DefaultTypeAdapter, valueOf(f.Finding.Spec.Vulnerability).Aliases)
	}},
})

var packageKind = newKind("Package", map[string]member{
	"name":         text(256, func(f *Facts) string { return valueOf(f.Finding.Spec.Package).Name }),
	"version":      text(128, func(f *Facts) string { return valueOf(f.Finding.Spec.Package).Version }),
	"purl":         text(512, func(f *Facts) string { return valueOf(f.Finding.Spec.Package).PURL }),
	"fixedVersion": text(256, func(f *Facts) string { return valueOf(f.Finding.Spec.Package).FixedVersion }),
})

var findingKind = newKind("Finding", map[string]member{
	"name":         text(253, func(f *Facts) string { return f.Finding.Name }),
	"tool":         text(128, func(f *Facts) string { return f.Finding.Spec.Tool }),
	"analysis":     text(256, func(f *Facts) string { return f.Finding.Spec.Analysis }),
	"category":     text(16, func(f *Facts) string { return string(f.Finding.Spec.Category) }),
	"ruleID":       text(512, func(f *Facts) string { return f.Finding.Spec.RuleID }),
	"class":        text(256, func(f *Facts) string { return f.Finding.Spec.Class }),
	"severity":     text(8, func(f *Facts) string { return string(f.Finding.Spec.Details.Severity) }),
	"toolSeverity": text(64, func(f *Facts) string { return f.Finding.Spec.Details.ToolSeverity }),
	"title":        text(512, func(f *Facts) string { return f.Finding.Spec.Details.Title }),
	"path":         text(1024, func(f *Facts) string { return valueOf(f.Finding.Spec.Details.Location).FilePath }),
	"confidence":   text(8, func(f *Facts) string { return string(f.Finding.Spec.Confidence) }),
	"secretType":   text(128, func(f *Facts) string { return f.Finding.Spec.SecretType }),
	// Not 0 if the scanner gives none, because "score < 4.0" must not mute unrated findings.
	"score": {typ: cel.DoubleType, get: func(f *Facts) ref.Val {
		score, err := strconv.ParseFloat(f.Finding.Spec.Details.Score, 64)
		if err != nil {
			return nil
		}
		return types.Double(score)
	}},
	"detectedAt": {typ: cel.TimestampType, get: func(f *Facts) ref.Val {
		return types.Timestamp{Time: findingstate.CreatedAt(f.Finding).Time}
	}},
	"vulnerability": within(vulnerabilityKind),
	"package":       within(packageKind),
})

// The names of project and repository come from the finding, even if the objects do not exist.
var projectKind = newKind("Project", map[string]member{
	"name":         text(253, func(f *Facts) string { return string(f.Finding.Spec.ProjectRef.Name) }),
	"displayName":  text(200, func(f *Facts) string { return valueOf(f.Project).Spec.DisplayName }),
	"relativePath": text(1024, func(f *Facts) string { return valueOf(f.Project).Spec.RelativePath }),
	"owner":        text(256, func(f *Facts) string { return valueOf(f.Project).Spec.Owner }),
})

var repositoryKind = newKind("Repository", map[string]member{
	"name":          text(253, func(f *Facts) string { return string(f.Finding.Spec.RepositoryRef.Name) }),
	"fullName":      text(512, func(f *Facts) string { return valueOf(f.Repository).Spec.FullName }),
	"provider":      text(63, func(f *Facts) string { return valueOf(f.Repository).Spec.Provider }),
	"defaultBranch": text(255, func(f *Facts) string { return valueOf(f.Repository).Spec.DefaultBranch }),
})

// roots holds the variables of expressions, except now.
var roots = map[string]*kind{"finding": findingKind, "project": projectKind, "repository": repositoryKind}

var kinds = map[string]*kind{
	findingKind.name: findingKind, projectKind.name: projectKind, repositoryKind.name: repositoryKind,
	vulnerabilityKind.name: vulnerabilityKind, packageKind.name: packageKind,
}

// ProjectFactsDiffer reports whether an expression could tell the two projects apart.
func ProjectFactsDiffer(a, b *v1alpha1.Project) bool {
	return differ(projectKind, &Facts{Project: a}, &Facts{Project: b})
}

// RepositoryFactsDiffer reports whether an expression could tell the two repositories apart.
func RepositoryFactsDiffer(a, b *v1alpha1.Repository) bool {
	return differ(repositoryKind, &Facts{Repository: a}, &Facts{Repository: b})
}

// differ reports whether a member of the kind differs between the two facts, for an empty finding.
func differ(k *kind, a, b *Facts) bool {
	a.Finding, b.Finding = &v1alpha1.Finding{}, &v1alpha1.Finding{}
	for _, m := range k.members {
		if m.get(a).Equal(m.get(b)) != types.True {
			return true
		}
	}
	return false
}

// provider declares the kinds to the type checker, so that an expression with a misspelt member does not compile.
type provider struct{ types.Provider }

// FindStructType returns the type of that name.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if k, ours := kinds[name]; ours {
		return types.NewTypeTypeWithParam(k.typ), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames returns the members of the type of that name.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	k, ours := kinds[name]
	if !ours {
		return p.Provider.FindStructFieldNames(name)
	}
	return slices.Sorted(maps.Keys(k.members)), true
}

// FindStructFieldType returns the member of that name.
func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	k, ours := kinds[name]
	if !ours {
		return p.Provider.FindStructFieldType(name, field)
	}
	m, found := k.members[field]
	if !found {
		return nil, false
	}
	return &types.FieldType{
		Type: m.typ,
		IsSet: func(target any) bool {
			o, is := target.(*object)
			return is && isSet(m.get(o.facts))
		},
		GetFrom: func(target any) (any, error) {
			o, is := target.(*object)
			if !is {
				return nil, fmt.Errorf("%T has no member %q", target, field)
			}
			if value := m.get(o.facts); value != nil {
				return value, nil
			}
			return nil, fmt.Errorf("no such key: %s", field)
		},
	}, true
}

// isSet is the result of has(): whether a value exists and is not empty.
func isSet(value ref.Val) bool {
	switch v := value.(type) {
	case nil:
		return false
	case types.String:
		return v != ""
	case interface{ Size() ref.Val }:
		return v.Size() != types.IntZero
	default:
		return true
	}
}

func valueOf[T any](pointer *T) T { return ptr.Deref(pointer, *new(T)) }

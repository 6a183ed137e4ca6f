package triagepolicy

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// object is a value of one of the kinds. It reads from the facts on demand.
type object struct {
	kind  *kind
	facts *Facts
}

// ConvertToNative fails: no function takes an object.
func (o *object) ConvertToNative(to reflect.Type) (any, error) {
	if to == reflect.TypeFor[*object]() {
		return o, nil
	}
	return nil, fmt.Errorf("a %s is no %v", o.kind.name, to)
}

// ConvertToType only converts to the type itself.
func (o *object) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.TypeType:
		return o.kind.typ
	default:
		if to.TypeName() == o.kind.name {
			return o
		}
		return types.NewErr("a %s is no %s", o.kind.name, to.TypeName())
	}
}

// Equal reports whether both are the same member of the same finding.
func (o *object) Equal(other ref.Val) ref.Val {
	another, is := other.(*object)
	return types.Bool(is && another.kind == o.kind && another.facts == o.facts)
}

// Type returns the kind's type.
func (o *object) Type() ref.Type { return o.kind.typ }

// Value returns the object, which the provider's members read from.
func (o *object) Value() any { return o }

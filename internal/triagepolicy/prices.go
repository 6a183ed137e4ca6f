package triagepolicy

import (
	"math"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// maxText bounds the texts that an expression may build, in characters. CEL counts one unit for some operations that
	// read a whole text, such as searching a list for it.
	maxText = 4 << 10
	// bytesPerUnit is how many bytes of two texts are compared for one unit: a character has four at most, and CEL's own
	// estimate is a unit for ten of them.
	bytesPerUnit = 40
	// zoneCost is the cost of reading a time zone, which CEL counts as one unit.
	zoneCost = 500
)

// readers are functions that read a whole text, and for which CEL counts one unit.
var readers = map[string]bool{
	"size": true, "int": true, "uint": true, "double": true, "timestamp": true, "duration": true, "bool": true,
}

// prices holds the cost of calls that take longer than CEL counts.
type prices struct {
	patterns patterns
	// tooLong is set to the second operand of the first + whose text may become longer than maxText. It may be nil.
	tooLong *ast.Expr
}

// CallCost returns the actual cost of a call; nil to use the libraries' own cost.
func (p prices) CallCost(function, _ string, arguments []ref.Val, _ ref.Val) *uint64 {
	switch {
	case function == functionMatches:
		return p.patterns.cost(arguments)
	case isComparison(function) && len(arguments) == 2:
		return costOfComparison(arguments[0], arguments[1])
	case function == "contains" && len(arguments) == 2:
		return costOfSearch(arguments[0], arguments[1])
	case readers[function] && len(arguments) == 1:
		if text, is := arguments[0].(types.String); is {
			return new(1 + lengthCost(text))
		}
	case isInZone(function, len(arguments)-1, true):
		return new(uint64(zoneCost))
	}
	return nil
}

// costOfComparison returns the cost of comparing two lists, maps or texts; nil for other values. CEL would count all
// characters of both texts to learn the price, even if one of them is empty.
func costOfComparison(a, b ref.Val) *uint64 {
	if one, other, ok := texts(a, b); ok {
		return new(units(min(len(one), len(other))))
	}
	one, sized := a.(traits.Sizer)
	other, bothSized := b.(traits.Sizer)
	if !isSequence(a) || !sized || !bothSized {
		return nil
	}
	return new(1 + min(sizeOfValue(one), sizeOfValue(other)))
}

// costOfSearch returns the cost of looking for a text in another one; nil for other values.
func costOfSearch(a, b ref.Val) *uint64 {
	text, part, ok := texts(a, b)
	if !ok {
		return nil
	}
	return new(units(len(text)) * units(len(part)))
}

func texts(a, b ref.Val) (one, other types.String, ok bool) {
	one, isText := a.(types.String)
	other, ok = b.(types.String)
	return one, other, isText && ok
}

// units returns the cost of reading so many bytes, one unit at least.
func units(bytes int) uint64 { return 1 + uint64(max(0, bytes))/bytesPerUnit }

func isSequence(v ref.Val) bool { return v.Type() == types.ListType || v.Type() == types.MapType }

func sizeOfValue(value traits.Sizer) uint64 {
	size, _ := value.Size().(types.Int)
	return uint64(max(0, size))
}

func lengthCost(text types.String) uint64 {
	return uint64(math.Ceil(float64(sizeOfValue(text)) * common.StringTraversalCostFactor))
}

// EstimateCallCost returns the estimated cost of a call; nil to use the libraries' own estimate.
func (p prices) EstimateCallCost(function, _ string, target *checker.AstNode,
	arguments []checker.AstNode) *checker.CallEstimate {
	if isInZone(function, len(arguments), target != nil) {
		return &checker.CallEstimate{CostEstimate: checker.FixedCostEstimate(zoneCost)}
	}
	if target != nil {
		arguments = append([]checker.AstNode{*target}, arguments...)
	}
	switch {
	case function == functionMatches && len(arguments) > 0:
		return p.patterns.estimate(arguments)
	case function == operators.Add && len(arguments) == 2:
		return p.refuseLongText(arguments)
	case isEquality(function) && len(arguments) == 2 && isCollection(arguments[0].Type()):
		size := min(sizeOfNode(arguments[0]).Max, sizeOfNode(arguments[1]).Max)
		return estimateOf(checker.CostEstimate{Max: size})
	case readers[function] && len(arguments) == 1 && arguments[0].Type().Kind() == types.StringKind:
		return estimateOfReading(arguments[0])
	}
	return nil
}

// estimateOfReading returns the estimate for reading a whole text. It is nil, for one unit, if the size is unknown, as
// for a part of another text: then the actual cost is the bound.
func estimateOfReading(text checker.AstNode) *checker.CallEstimate {
	size := text.ComputedSize()
	if size == nil {
		return nil
	}
	return estimateOf(size.MultiplyByCostFactor(common.StringTraversalCostFactor))
}

// estimateOf returns the estimate for a call that costs one unit more.
func estimateOf(cost checker.CostEstimate) *checker.CallEstimate {
	return &checker.CallEstimate{CostEstimate: cost.Add(checker.FixedCostEstimate(1))}
}

// refuseLongText returns an unlimited cost, and notes the operand, if the text may become longer than maxText; else
// nil.
func (p prices) refuseLongText(parts []checker.AstNode) *checker.CallEstimate {
	kind := parts[0].Type().Kind()
	isText := kind == types.StringKind || kind == types.BytesKind
	if !isText || sizeOfNode(parts[0]).Add(sizeOfNode(parts[1])).Max <= maxText {
		return nil
	}
	if p.tooLong != nil && *p.tooLong == nil {
		*p.tooLong = parts[1].Expr()
	}
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Max: math.MaxUint64}}
}

// sizeOfNode returns the size of a value, as far as it is known.
func sizeOfNode(node checker.AstNode) checker.SizeEstimate {
	if known := node.ComputedSize(); known != nil {
		return *known
	}
	return checker.UnknownSizeEstimate()
}

package findingquery

import (
	"math"
	"strconv"
)

// MaxScore is the highest score, in tenths.
const MaxScore = 100

// Tenths parses a score from 0 to 10 and returns it in tenths; ok is false for any other text.
func Tenths(score string) (tenths int, ok bool) {
	number, err := strconv.ParseFloat(score, 64)
	if err != nil || !(number >= 0 && number <= MaxScore/10) {
		return 0, false
	}
	return int(math.Round(number * 10)), true
}

package dataset

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// dice returns a generator that yields the same numbers for the same thing in every run.
func dice(what string, i int) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(what)) //nolint:errcheck // a hash never fails
	return rand.New(rand.NewPCG(hash.Sum64(), uint64(i)))
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// chance is true in percent of a hundred cases.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// uid derives a UID from the object's identity.
func uid(namespace, kind, name string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(namespace+"/"+kind+"/"+name)).String())
}

// sha returns a commit SHA.
func sha(r *rand.Rand) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 40)
	for i := range out {
		out[i] = digits[r.IntN(16)]
	}
	return string(out)
}

// moment returns a whole second within the span that ends with now.
func moment(r *rand.Rand, now time.Time) v1alpha1.Time {
	seconds := int64(Span / time.Second)
	return v1alpha1.NewTime(now.UTC().Truncate(time.Second).Add(-time.Duration(1+r.Int64N(seconds)) * time.Second))
}

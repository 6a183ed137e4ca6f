package provision

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

var commitHash = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)

// IsCommitHash reports whether a text is the hash of a commit, in full or shortened, in lower or upper case.
func IsCommitHash(text string) bool { return commitHash.MatchString(text) }

// Branch returns the branch that a ref names, as refs/heads/NAME or NAME. isBranch is false for other refs, such as
// those of pull requests and tags, and HEAD, which git reports in place of the branch of a detached checkout.
func Branch(ref string) (name string, isBranch bool) {
	name, _ = strings.CutPrefix(ref, "refs/heads/")
	return name, name != "HEAD" && !strings.HasPrefix(name, "refs/")
}

// recordable returns the branch that a ref names if an import may record it as the scan branch of a repository that it
// creates; empty otherwise.
func recordable(ref string) string {
	if branch, isBranch := Branch(ref); isBranch && len(branch) <= maxBranch && isPlain(branch) {
		return branch
	}
	return ""
}

// BranchOf returns the branch whose results the repository's projects hold; empty if the repository names none.
// isBranch is false if what it names is not a branch: every ref is refused then.
func BranchOf(repository *v1alpha1.Repository) (name string, isBranch bool) {
	return Branch(cmp.Or(repository.Spec.ScanBranch, repository.Spec.DefaultBranch))
}

// TakesRef reports whether results of a ref may be imported into the repository's projects: those of another branch or
// of a pull request would close findings that the repository's branch still has. A repository that names no branch
// takes any branch. One that does not exist yet (nil) takes a branch that becomes its scan branch: if it were created
// without one, it would refuse every later upload of that branch.
func TakesRef(repository *v1alpha1.Repository, ref string) bool {
	if repository == nil {
		return recordable(ref) != ""
	}
	branch, isBranch := Branch(ref)
	own, _ := BranchOf(repository)
	return isBranch && (own == "" || branch == own)
}

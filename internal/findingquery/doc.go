// Package findingquery holds the rules for selecting findings: by vulnerability, package, score or words. The
// REST API and the kubectl plugin give the same results because both use it. It is pure.
package findingquery

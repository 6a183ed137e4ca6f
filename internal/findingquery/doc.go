// Package findingquery holds the rules by which findings are asked for: by a vulnerability, a package, a score or
// words. The REST API and the kubectl plugin answer alike because both use them. They are pure.
package findingquery

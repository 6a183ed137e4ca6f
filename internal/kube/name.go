package kube

import "k8s.io/apimachinery/pkg/util/validation"

// IsName reports whether a resource can have the name. For some other names a client returns an error without a
// request.
func IsName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

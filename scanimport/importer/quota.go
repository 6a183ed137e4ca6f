package importer

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// ExplainQuota adds advice to the error of a write that the organization's quota refused, and returns any other error
// unchanged. Such a refusal ends an import before it closes anything.
func ExplainQuota(err error, kind string) error {
	if !kube.IsQuotaExceeded(err) {
		return err
	}
	return fmt.Errorf("the organization has used up its quota of objects of kind %s: delete what is no longer needed, or raise spec.quotas "+
		"of the Organization, and try again: what is already written is kept (%w)", kind, err)
}

package kube

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// Pages calls page for each page of a list, first with an empty token. page returns the token of the next page, or an
// empty one to end. If the token refers to a state that the API server no longer keeps, the list continues with the
// current objects after the last name.
func Pages(page func(token string) (next string, err error)) error {
	for token := ""; ; {
		next, err := page(token)
		if after := continueAfter(err); after != "" {
			next, err = after, nil
		}
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// continueAfter returns the token that continues a list whose state the API server no longer keeps: with the current
// objects, after the last name. It returns "" if the error has no such token.
func continueAfter(err error) string {
	if !apierrors.IsResourceExpired(err) {
		return ""
	}
	return StatusOf(err).Continue
}

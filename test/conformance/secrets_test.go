package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/leaks"
)

// secretSearch searches for every token and webhook secret of the suite where they must not appear.
// It is nil unless the suite has started the deployment, because it has no access to the logs of
// others.
var secretSearch *leaks.Search

// keepAnswer adds the answer to the searched texts.
func keepAnswer(a answer) {
	if secretSearch != nil {
		asked, _, _ := strings.Cut(a.request, "?")                                                     // a test sends a key in the query
		fmt.Fprintf(secretSearch.Text("answers"), "%s: %d %v %s\n", asked, a.Status, a.Header, a.Body) //nolint:errcheck // the search tells
	}
}

func keepMetrics(of *harness.Component) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	metrics, err := of.Metrics(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(secretSearch.Text("metrics of "+of.Name), metrics)
	return err
}

func keepLog(of *harness.Component) error {
	log, err := os.Open(of.Log)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // only read from
	_, err = io.Copy(secretSearch.Text("log of "+of.Name), log)
	return err
}

// endSearch fails the suite if a secret has leaked, or if the search covered too little to be
// conclusive.
func endSearch() error {
	result, err := secretSearch.End()
	if err != nil {
		return fmt.Errorf("look for secrets: %w", err)
	}
	fmt.Fprintf(os.Stdout, "secrets: %d forms looked for in %d bytes, %d leaks\n", result.Secrets, result.Bytes, len(result.Leaks)) //nolint:errcheck // for people
	if result.Secrets == 0 || result.Bytes == 0 {
		return errors.New("look for secrets: there were none, or nothing to look through")
	}
	if len(result.Leaks) > 0 {
		return errors.New("secrets have leaked:\n" + strings.Join(result.Leaks, "\n"))
	}
	return nil
}

package client_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/appsec-dev/findings-operator/client"
)

// The address and the key of a service; `make run` writes both into .run/env.
var address, apiKey = os.Getenv("FINDINGS_URL"), os.Getenv("FINDINGS_API_KEY")

// List all findings of a repository, page by page.
func Example() {
	findings, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	size, repository := 2, "storefront"
	query := &client.ListFindingsV2Params{Size: &size, RepoId: &repository}
	for {
		page, err := findings.ListFindingsV2WithResponse(context.Background(), query)
		if err != nil {
			log.Fatal(err)
		}
		if page.JSON200 == nil {
			log.Fatalf("list findings: %s: %s", page.Status(), page.Body)
		}
		for _, finding := range page.JSON200.Items {
			fmt.Println(finding.Id)
		}
		if page.JSON200.NextCursor == "" {
			return
		}
		query.Cursor = &page.JSON200.NextCursor
	}
	// Unordered output:
	// path-traversal
	// sql-injection
	// weak-hash
}

// Mute a finding, with the reason.
func ExampleClientWithResponses_UpdateFindingV2WithResponse() {
	findings, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	finding, muted, why := "weak-hash", client.UserStatus("muted"), "The hash protects nothing: it names cache entries."
	result, err := findings.UpdateFindingV2WithResponse(context.Background(), "storefront",
		&client.UpdateFindingV2Params{FindingId: &finding},
		client.FindingV2Update{UserStatus: &muted, Comments: &why})
	if err != nil {
		log.Fatal(err)
	}
	if result.JSON200 == nil {
		log.Fatalf("mute %s: %s: %s", finding, result.Status(), result.Body)
	}
	fmt.Println(result.JSON200.Id, result.JSON200.Status, result.JSON200.UserStatus)
	// Output: weak-hash open_muted muted
}

package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

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

// Follow what changes, and read the stream as it arrives.
func ExampleClientWithResponses_StreamEvents() {
	findings, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	kinds := "finding"
	stream, err := findings.StreamEvents(context.Background(), &client.StreamEventsParams{Kinds: &kinds})
	if err != nil {
		log.Fatal(err)
	}
	if stream.StatusCode != http.StatusOK {
		log.Fatalf("follow: %s", stream.Status)
	}
	defer stream.Body.Close()
	confirm(findings, "sql-injection")
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData {
			continue
		}
		var change struct {
			ID         string `json:"id"`
			UserStatus string `json:"user_status"`
		}
		if json.Unmarshal([]byte(data), &change) == nil && change.ID == "sql-injection" {
			fmt.Println(change.ID, change.UserStatus)
			return
		}
	}
	// Output: sql-injection active
}

func confirm(findings *client.ClientWithResponses, id string) {
	result, err := findings.UpdateFindingV1WithResponse(context.Background(), id,
		&client.UpdateFindingV1Params{}, client.FindingV1Update{UserStatus: "active"})
	if err != nil {
		log.Fatal(err)
	}
	if result.JSON200 == nil {
		log.Fatalf("confirm %s: %s: %s", id, result.Status(), result.Body)
	}
}

// Mute a finding, with the reason.
func ExampleClientWithResponses_UpdateFindingV2WithResponse() {
	findings, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	finding, muted, reason := "weak-hash", client.UserStatus("muted"), client.GivenReason("false-positive")
	why := "The hash protects nothing: it names cache entries."
	result, err := findings.UpdateFindingV2WithResponse(context.Background(), "storefront",
		&client.UpdateFindingV2Params{FindingId: &finding},
		client.FindingV2Update{UserStatus: &muted, Reason: &reason, Comments: &why})
	if err != nil {
		log.Fatal(err)
	}
	if result.JSON200 == nil {
		log.Fatalf("mute %s: %s: %s", finding, result.Status(), result.Body)
	}
	fmt.Println(result.JSON200.Id, result.JSON200.Status, result.JSON200.UserStatus)
	// Output: weak-hash open_muted muted
}

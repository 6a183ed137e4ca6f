package main

import "github.com/appsec-dev/findings-operator/bench/internal/bench"

// measurements holds the measurements in the order in which they run, one per line.
var measurements = []bench.Measurement{
	{Name: "settled", About: "that the controllers find nothing to write in what was loaded", Run: settled},
	{Name: "reads", About: "pages of findings, against memory, the API server and PostgreSQL", Run: reads},
	{Name: "filters", About: "filters of reviews and findings, against the same list without", Run: filters},
	{Name: "others", About: "pages of reviews and repositories, and single resources", Run: others},
	{Name: "writes", About: "decisions through the REST API, against the same patch by client-go", Run: writes},
	{Name: "lag", About: "how far the REST API is behind what is written past it", Run: controlledSection(lag)},
	{Name: "triage", About: "policies and operations over many findings, against bare writes", Run: triage},
	{Name: "importing", About: "imports, against bare creates by client-go", Run: controlledSection(importing)},
	{Name: "underimport", About: "a person's decisions during an import, and its states after it", Run: underImport},
	{Name: "uploads", About: "uploads over REST, against the plugin's import of the same", Run: uploads},
	{Name: "cost", About: "a finding's whole life, against an earlier build", Run: cost},
	{Name: "webhooks", About: "reconciles and deliveries that follow from decisions", Run: controlledSection(webhooks)},
	{Name: "sizes", About: "memory of each process at each size", Run: sizes},
	{Name: "capacity", About: "one control plane of each size: restarted, read, decided and imported into", Run: capacity},
	{Name: "start", About: "time until ready and memory, against a bare list and a cache of the same", Run: starting},
}

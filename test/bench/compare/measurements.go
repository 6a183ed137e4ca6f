package main

import "github.com/appsec-dev/findings-operator/test/bench/internal/bench"

// measurements in the order in which they are made, a line each.
var measurements = []bench.Measurement{
	{Name: "settled", About: "that the controllers find nothing to write in what was loaded", Run: settled},
	{Name: "reads", About: "pages of findings, against memory, the API server and PostgreSQL", Run: reads},
	{Name: "filters", About: "filters of reviews and findings, against the same list without", Run: filters},
	{Name: "others", About: "pages of reviews and repositories, and single resources", Run: others},
}

// Command compare measures the service side by side with alternatives that do the same work, and writes
// docs/performance.md and docs/performance. `make bench` runs it; `go run ./bench/compare --help` lists the flags.
//
// # How it measures
//
// Each size of --findings gets a separate control plane: a real etcd and kube-apiserver, with the
// findings written directly to etcd with the status that their controller gives them, and the real
// binary over it. The compared sides take turns in rounds (package measure). One client in a
// separate process, whose cost is the same for every side, sends the requests (package load). The
// results are the ratios within each round and their median, because machines differ, and other
// work runs on this one too.
//
// # How to add a measurement
//
// Write a file with a function and add it to the list in measurements.go:
//
//	{Name: "writes", About: "what a PATCH through the REST API costs", Run: writes},
//
//	func writes(ctx context.Context, b *bench.Bench) (*report.Section, error) {
//		f, err := b.Fixture(ctx, b.Largest()) // shared: put it right again
//		if err != nil {
//			return nil, err
//		}
//		if err := f.StartController(ctx); err != nil { // it does not run in a fixture
//			return nil, err
//		}
//		defer f.StopController() // and the next measurement finds it as it was
//		results, err := b.Compare(ctx,
//			measure.Side{Name: "facade", Run: patchByREST, PIDs: []int{f.Facade.PID()}},
//			measure.Side{Name: "client-go", Run: patchByClient})
//		if err != nil {
//			return nil, err
//		}
//		return &report.Section{
//			Name: "writes", Title: "Writes", Text: "How it was measured.",
//			Rows: []report.Row{report.AtLeast("PATCH against client-go", 0.9, results.Ratio("facade", "client-go").Median, "%.2f")},
//		}, nil
//	}
//
// A Side is anything that runs for about the given duration and returns how many operations it did;
// b.Side makes one from a load.Target. A fixture has the plane (Client and Config of an
// administrator, ServiceAccount for a service account's, StartController with further flags,
// StartFacade, Readied of each process, Memory), the organization with its tokens, and the data:
// Data.Finding(i) is the i-th finding as it was loaded. dataset.RevisionsSince returns the objects
// written since a revision. Keep to b.Plan and b.Sizes: with b.Short everything must take only
// seconds. Figures with a target are rows; a figure that cannot be measured here is a
// report.Missing row with the reason, and not an error. Explanations go into the section's tables
// and charts.
package main

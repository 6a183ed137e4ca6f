package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
)

// sizeOptions are the flags of `findings-operator size`.
type sizeOptions struct {
	findings, scans, projects, organizations, replicas int
}

func newSizeCommand() *cobra.Command {
	o := &sizeOptions{}
	command := &cobra.Command{
		Use:   "size --findings N",
		Short: "Print the memory and machines that a number of findings needs",
		Long: `Print the memory and machines that a number of findings needs, with the calculation.

The figures are those of docs/performance/sizes.md, where memory was measured with up to 100,000 findings, and
leave room for all of them to change at once, and for uploads. Closed findings count until retention removes them.
A scan counts as a finding; it is as large or smaller. Scans are kept unless spec.retention.finishedScans is set:
count those of a day times the days that they are kept. A project counts as 100 findings, for the two years of its
history that are kept: an estimate for findings that change every day.
Pull requests' issues and webhook deliveries are as large as findings or smaller: if you keep many, add them.
Only a delivery to an endpoint with batch: PerScan may be larger: up to 64 KiB, as much as 15 findings. The REST API
does not hold that in memory.`,
		Example: `  # What do ten organizations with 100,000 findings together need?
  findings-operator size --findings 100000 --organizations 10`,
		Args: flagerror.NoArguments(""),
		RunE: func(command *cobra.Command, _ []string) error {
			if min(o.findings, o.scans, o.projects) < 0 || o.organizations < 1 || o.replicas < 1 {
				return errors.New("--findings, --scans and --projects must be 0 or more, --organizations and --replicas 1 or more")
			}
			_, err := io.WriteString(command.OutOrStdout(), o.report())
			return err
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.findings, "findings", 0, "findings of all organizations together, closed ones included")
	flags.IntVar(&o.scans, "scans", 0, "scans that are kept, of all organizations together")
	flags.IntVar(&o.projects, "projects", 0, "projects of all organizations together, each with its history")
	flags.IntVar(&o.organizations, "organizations", 1, "organizations")
	flags.IntVar(&o.replicas, "replicas", 2, "replicas of the controllers and of the REST API, each")
	_ = command.MarkFlagRequired("findings")
	return command
}

// report describes the required resources and how they were computed.
func (o *sizeOptions) report() string {
	p, out := message.NewPrinter(language.English), &strings.Builder{}
	printf := func(format string, values ...any) { out.WriteString(p.Sprintf(format, values...)) }
	planes, organizations := planesFor(max(o.findings, o.scans, o.projects*projectTrends), o.organizations)
	share := func(all int) int { return divideUp(all*organizations, o.organizations) }
	each := ""
	if planes > 1 {
		each = " for each control plane"
		printf("%d control planes, since Kubernetes recommends at most %d objects of a kind: divide the organizations among them.\n\n",
			planes, onePlane)
	}
	for _, kind := range []struct {
		name   string
		all    int
		remedy string
	}{
		{"findings", o.findings, "let retention remove closed findings sooner, or make more organizations"},
		{"scans", o.scans, "let retention remove finished scans sooner, or make more organizations"},
		{"FindingTrends of projects", o.projects * projectTrends, "make more organizations"},
	} {
		if most := share(kind.all); most > onePlane {
			printf("%d %s per control plane exceed the %d objects of a kind that Kubernetes recommends at most, and an\n"+
				"organization cannot be divided: %s.\n\n", most, kind.name, onePlane, kind.remedy)
		}
	}
	findings, scans, projects := share(o.findings), share(o.scans), share(o.projects)
	objects := findings + scans + projects*projectObjects + organizations*organizationObjects
	noun := "organizations"
	if organizations == 1 {
		noun = "organization"
	}
	printf("%d findings, %d scans, %d projects of %d objects and %d %s of %d objects: %d objects%s\n\n",
		findings, scans, projects, projectObjects, organizations, noun, organizationObjects, objects, each)
	printf("Memory of a process, in MB: %d x (base + objects x each)\n", underLoad)
	for _, f := range []footprint{sizedAPIServer, sizedEtcd, sizedControl, sizedREST} {
		forUploads := ""
		if f.uploads > 0 {
			forUploads = p.Sprintf(" + %.0f for uploads", f.uploads/1e6)
		}
		printf("  %-14s = %d x (%.0f + %d x %.4f)%s = %.0f\n",
			f.process, underLoad, f.base/1e6, objects, f.finding/1e6, forUploads, f.of(objects)/1e6)
	}
	printf("Uploads take %d x --uploads-mib of the REST API, here the default of %d MiB.\n",
		uploadCopies, uploads.DefaultLimits.Bytes>>20)
	printf("\netcd's --quota-backend-bytes, in MB: objects x %.4f x %d versions, at least %.0f\n  = %.0f\n",
		storedBytes/1e6, versions, minQuota/1e6, quotaFor(objects)/1e6)
	printf("\nMachines%s:\n  1 with %d GiB for kube-apiserver and etcd (3 of them to survive the loss of one)\n"+
		"  %d with %d GiB for a replica of the controllers and one of the REST API each\n"+
		"Two cores in each take about 80 decisions per second; see docs/performance.md.\n",
		each, machineFor(sizedAPIServer.of(objects)+sizedEtcd.of(objects)), o.replicas,
		machineFor(sizedControl.of(objects)+sizedREST.of(objects)))
	return out.String()
}

package report

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Run says where, when and of what something was measured.
type Run struct {
	Processor, Go, System, Commit, Command string
	Cores                                  int
	// Memory of the machine in bytes.
	Memory int64
	At     time.Time
}

// ThisRun describes this machine and the binary that is measured; what cannot be found out stays empty.
func ThisRun(binary, command string) Run {
	return Run{
		Processor: fromFile("/proc/cpuinfo", "model name"), Go: runtime.Version(), System: runtime.GOOS + "/" +
			runtime.GOARCH,
		Commit: commit(binary), Command: command, Cores: runtime.NumCPU(), Memory: memory(), At: time.Now().UTC(),
	}
}

// String is one line.
func (r Run) String() string {
	return fmt.Sprintf("Measured on %s at commit %s with `%s`: %d cores (%s), %d GB of memory, %s, %s. All processes share these cores, the clients included.",
		r.At.Format(time.DateOnly), r.Commit, r.Command, r.Cores, r.Processor, (r.Memory+1<<29)>>30, r.System, r.Go)
}

// commit that a binary was built of, as the go command noted it.
func commit(binary string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "(unknown)"
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	revision := settings["vcs.revision"]
	if revision == "" {
		return "(unknown)"
	}
	if settings["vcs.modified"] == "true" {
		return revision[:10] + " with changes"
	}
	return revision[:10]
}

func memory() int64 {
	value, _, _ := strings.Cut(fromFile("/proc/meminfo", "MemTotal"), " ")
	kilobytes, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// fromFile is what a file of lines "name: value" has first by that name.
func fromFile(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

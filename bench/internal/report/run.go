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

// Run describes where, when and on which commit something was measured.
type Run struct {
	Processor, Go, System, Commit, Command string
	Cores                                  int
	// Memory of the machine in bytes.
	Memory int64
	At     time.Time
}

// ThisRun describes this machine and the measured binary; unknown fields stay empty.
func ThisRun(binary, command string) Run {
	return Run{
		Processor: fromFile("/proc/cpuinfo", "model name"), Go: runtime.Version(), System: runtime.GOOS + "/" +
			runtime.GOARCH,
		Commit: commit(binary), Command: command, Cores: runtime.NumCPU(), Memory: memory(), At: time.Now().UTC(),
	}
}

// String returns the run in one line.
func (r Run) String() string {
	return fmt.Sprintf("Measured on %s at commit %s with `%s`: %d cores (%s), %d GB of memory, %s, %s. All processes share these cores, the clients included.",
		r.At.Format(time.DateOnly), r.Commit, r.Command, r.Cores, r.Processor, (r.Memory+1<<29)>>30, r.System, r.Go)
}

// commit returns the commit that a binary was built from, as recorded by the go command.
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

// fromFile returns the first value with that name in a file of lines "name: value".
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

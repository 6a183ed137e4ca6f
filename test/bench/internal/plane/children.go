package plane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenOf finds the children of a process by what they are called and the port that their
// command line names: the test environment starts them and does not tell.
func childrenOf(parent int, ports map[string]string) (map[string]int, error) {
	found := map[string]int{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(content)) {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if err != nil {
				continue // the process has ended
			}
			program, arguments, _ := bytes.Cut(line, []byte{0})
			name := filepath.Base(string(program))
			if port, ok := ports[name]; ok && bytes.Contains(arguments, []byte(port)) {
				if found[name], err = strconv.Atoi(child); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(found) != len(ports) {
		return nil, fmt.Errorf("of the control plane's processes only %v were found", found)
	}
	return found, nil
}

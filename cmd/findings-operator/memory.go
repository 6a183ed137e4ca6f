package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

// memoryLimitVariable is the environment variable that holds the container's memory limit in bytes.
const memoryLimitVariable = "FINDINGS_MEMORY_LIMIT"

// limitMemory makes the garbage collector work harder before Go's memory reaches the container's limit. It leaves a
// tenth for memory that counts towards that limit but is not Go's, such as the buffers of connections. The manifests
// also set GOMEMLIMIT to the whole limit, for earlier versions. Any other value was set by a user and takes precedence.
func limitMemory() error {
	value, goLimit := os.Getenv(memoryLimitVariable), os.Getenv("GOMEMLIMIT")
	if value == "" || goLimit != "" && goLimit != value {
		return nil
	}
	limit, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return fmt.Errorf("read the environment variable %s: %w", memoryLimitVariable, err)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}

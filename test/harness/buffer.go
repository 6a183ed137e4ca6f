package harness

import (
	"bytes"
	"sync"
)

// Buffer is a buffer that may be read while a process or a logger writes to it.
type Buffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

// Write appends to the buffer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

// String returns what has been written so far.
func (b *Buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}

package readmodel

import "context"

// signal wakes the publisher after a change.
func (m *Model) signal() {
	select {
	case m.changed <- struct{}{}:
	default: // it has been woken already
	}
}

// runPublisher shows changes to readers: the first change at once, and those that follow within an interval
// together.
func (m *Model) runPublisher(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.changed:
		}
		m.mu.Lock()
		m.publishAll()
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-m.clock.After(publishInterval):
		}
	}
}

func (m *Model) publishAll() {
	for _, p := range m.partitions {
		if p.dirty() {
			p.publish()
		}
	}
	m.reportChanges()
	m.updateLag()
}

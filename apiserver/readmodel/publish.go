package readmodel

import "context"

// signal tells the publisher that something has changed.
func (m *Model) signal() {
	select {
	case m.changed <- struct{}{}:
	default: // it has been told already
	}
}

// runPublisher shows readers what has changed: the first change at once, those that follow
// within an interval together.
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
		pause := m.clock.NewTimer(publishInterval)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C():
		}
	}
}

func (m *Model) publishAll() {
	for _, p := range m.partitions {
		if p.dirty() {
			p.publish()
		}
	}
	m.tellChanges()
	m.settleLag()
}

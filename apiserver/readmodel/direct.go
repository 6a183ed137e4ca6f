package readmodel

import "github.com/appsec-dev/findings-operator/apiserver/readmodel/index"

// Items without joined data are shown at once, as they arrive.

// setDirect holds an item, and shows it if an organization owns the namespace; nil removes the item of that
// name.
func setDirect[T any](m *Model, p *partition, held map[string]*T, x *index.Index[*T], name string, item *T) {
	if item == nil {
		delete(held, name)
		x.Remove(name)
	} else {
		held[name] = item
		if p.view != nil {
			x.Put(name, item)
		}
	}
	m.signal()
}

// directWork shows an item to an organization that has acquired its namespace.
func directWork[T any](held map[string]*T, x *index.Index[*T], name string) work {
	return work{
		render: func() error { return nil },
		show: func() {
			if item := held[name]; item != nil {
				x.Put(name, item)
			}
		},
	}
}

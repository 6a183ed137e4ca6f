package corpus

// ChangeEach calls try with each text, number and boolean of decoded JSON changed in turn, and its path. A text becomes
// several others, some of which are severities and scores.
func ChangeEach(value any, path string, try func(path string)) {
	switch value := value.(type) {
	case map[string]any:
		for name, old := range value {
			change(old, path+"."+name, func(other any) { value[name] = other }, try)
		}
	case []any:
		for i, old := range value {
			change(old, path+"[]", func(other any) { value[i] = other }, try)
		}
	}
}

// change sets other values in place of the old one, and then the old one again.
func change(old any, path string, set func(any), try func(path string)) {
	var others []any
	switch old := old.(type) {
	case string:
		others = []any{"low", "9.5", "critical", "2026-01-02T03:04:06Z", old + "x"}
	case float64:
		others = []any{old + 1}
	case bool:
		others = []any{!old}
	default:
		ChangeEach(old, path, try)
	}
	for _, other := range others {
		set(other)
		try(path)
	}
	set(old)
}

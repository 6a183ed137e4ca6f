package harness

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Sample is a value of a metric, with its labels.
type Sample struct {
	Labels map[string]string
	Value  float64
}

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// Samples returns the values of a metric in Prometheus' text format. It is an error if there is none.
func Samples(text, metric string) ([]Sample, error) {
	var out []Sample
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), metric)
		if !found || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		labels, value, err := splitSample(rest)
		if err != nil {
			return nil, err
		}
		s := Sample{Labels: map[string]string{}, Value: value}
		for _, pair := range label.FindAllStringSubmatch(labels, -1) {
			s.Labels[pair[1]] = pair[2]
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no metric %s", metric)
	}
	return out, nil
}

// Values returns all values of Prometheus' text format, by the name of the metric with its labels.
func Values(text string) (map[string]float64, error) {
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		series, value, err := splitSample(line)
		if err != nil {
			return nil, err
		}
		out[series] = value
	}
	return out, nil
}

// splitSample splits a line, or the rest of one, before its value.
func splitSample(line string) (before string, value float64, err error) {
	at := strings.LastIndexByte(line, ' ')
	if value, err = strconv.ParseFloat(line[at+1:], 64); err != nil {
		return "", 0, fmt.Errorf("%q: %w", line, err)
	}
	return line[:max(at, 0)], value, nil
}

// Sum adds up the values of a metric that have these labels, among others. It is an error if there is no such metric.
func Sum(text, metric string, labels map[string]string) (float64, error) {
	samples, err := Samples(text, metric)
	sum := 0.0
	for _, s := range samples {
		if s.has(labels) {
			sum += s.Value
		}
	}
	return sum, err
}

func (s Sample) has(labels map[string]string) bool {
	for name, value := range labels {
		if s.Labels[name] != value {
			return false
		}
	}
	return true
}

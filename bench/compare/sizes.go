package main

import (
	"context"
	"fmt"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// sizedProcesses are the processes of a plane, in the order of the table, and sizedNames their names on the page.
var (
	sizedProcesses = []string{"kube-apiserver", "etcd", "controller", "facade"}
	sizedNames     = []string{"kube-apiserver", "etcd", "controllers", "REST API"}
)

const sizesText = "Each size is loaded into a control plane of its own, with the same reviews. The controllers and the REST API are started on it, " +
	"with one replica each, and process everything. Memory is what a process takes of the machine when they have nothing left to do, " +
	"and behind it the most that it ever took. What a finding takes is the difference between the most at the largest and at the smallest size. " +
	"[`findings-operator size`](../operations.md#sizes) computes with these figures."

// sizes measures the memory of each process at each number of findings.
func sizes(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	table := report.Table{Columns: []string{"Findings", "stored MB"}}
	for _, name := range sizedNames {
		table.Columns = append(table.Columns, name+", MB")
	}
	var all []map[string]measure.Memory
	for _, size := range b.Sizes {
		b.Say("sizes: %d findings", size)
		f, err := b.Fixture(ctx, size)
		if err != nil {
			return nil, err
		}
		settled, err := settle(ctx, f)
		if err != nil {
			return nil, err
		}
		took := settled.memory
		all = append(all, took)
		row := []string{fmt.Sprint(size), megabytes(float64(f.Loaded.Bytes))}
		for _, process := range sizedProcesses {
			row = append(row, megabytes(float64(took[process].Resident))+", "+megabytes(float64(took[process].Peak)))
		}
		table.Rows = append(table.Rows, row)
	}
	each := report.Table{Columns: append([]string{"kB for each"}, sizedNames...)}
	finding, most := []string{"finding"}, len(all)-1
	for _, process := range sizedProcesses {
		took := float64(all[most][process].Peak) - float64(all[0][process].Peak)
		finding = append(finding, fmt.Sprintf("%.1f", took/1e3/float64(max(b.Largest()-b.Smallest(), 1))))
	}
	each.Rows = [][]string{finding}
	return &report.Section{Title: "What each size takes", Text: sizesText, Tables: []report.Table{table, each}}, nil
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// manyWanted is the share of the bare writes' rate that a policy and an operation must reach.
const manyWanted = 0.8

const triageText = "20 people decide through the REST API (`PATCH /v2/findings/{id}`), each about findings of its own, with a pause of a second on average after each answer. " +
	"The controllers run with their default settings, and observe what they decide. There are no reviews. Beside the people, in this order:\n\n" +
	"- **A policy** comes into force. The time runs from its creation until the status of the last finding shows its verdict. " +
	"It is compared with **bare status writes**: merge patches of the status with about as many bytes as a verdict's, made before the clock starts, by a client with the controllers' account, as many at once as the controllers reconcile. " +
	"The verdict itself is replaced by a condition's message of the same length, which the controllers leave alone.\n" +
	"- **An operation** is made and committed at once. The time runs from its creation until it is completed: its selection, and the record of what it did, are in it. " +
	"It is compared with **bare patches of `spec.triage`** to other findings, by a client with a triager's account, as many at once as an operation makes. The controllers record in the status what is decided, either way: " +
	"the column `all done` is the time until they had nothing left to do.\n\n" +
	"Half of the bare writes come before what they are compared with, and half after it; each half has as many findings as the table shows. In between the findings are put back as they were, kube-apiserver collects its garbage, and people are alone for a while: what a decision takes alone is the mean of these turns. " +
	"The ratio is to both halves together; in brackets it is to the one and to the other, of which the worse must reach what is wanted, then by the processor time per finding, which leaves out that of the client of the bare writes. " +
	"At rest, what etcd holds of all kinds of the group is compared before and after ten seconds; Leases that kube-apiserver itself renews are none of them."

// section reports the results.
func (m *many) section() *report.Section {
	section := &report.Section{Title: "Policies and operations over many findings", Text: triageText}
	section.Rows = append(section.Rows,
		m.ratioRow(fmt.Sprintf("a policy over %s findings, against bare status writes", thousands(len(m.ofPolicy))),
			policyTurn, bareStatusTurn),
		m.ratioRow(fmt.Sprintf("an operation over %s findings, against bare patches", thousands(len(m.ofOperation))),
			operationTurn, bareDecisionTurn),
		m.delayRow(policyTurn, bareStatusTurn), m.delayRow(operationTurn, bareDecisionTurn))
	for _, what := range []string{atRest, noneMatch, noneNewMatches, afterOperation} {
		row := report.AtMost("objects written at rest, "+what, 0, float64(len(m.written[what])), "%.0f")
		if len(m.written[what]) > 0 {
			row.Measured += fmt.Sprintf(" (%s)", strings.Join(m.written[what][:min(3, len(m.written[what]))], ", "))
		}
		section.Rows = append(section.Rows, row)
	}
	table := report.Table{Title: "Beside 20 people. Processor time is that of all that was done, people's decisions included, per finding:",
		Columns: []string{"What", "findings", "seconds", "a second", "all done", "kube-apiserver", "etcd", "controllers",
			"people's PATCHes", "tried again", "p50", "p99"}}
	group := report.Group{}
	for _, name := range []string{aloneTurn, bareStatusTurn, policyTurn, bareDecisionTurn, operationTurn} {
		for _, turn := range m.turns[name] {
			table.Rows = append(table.Rows, turn.row(name))
		}
		if name != aloneTurn {
			group.Bars = append(group.Bars, report.Bar{Name: strings.ReplaceAll(name, "`", ""), Value: rateOf(m.turns[name])})
		}
	}
	section.Tables = []report.Table{table}
	section.Charts = []report.Chart{{Title: "Beside 20 people", Unit: "findings a second", Groups: []report.Group{group}}}
	return section
}

func (t manyTurn) row(name string) []string {
	row := []string{name, "", "", "", "", "", "", ""}
	if t.Operations > 0 {
		row = []string{name, thousands(t.Operations), fmt.Sprintf("%.0f", t.Elapsed.Seconds()),
			fmt.Sprintf("%.0f", t.Rate()), seconds(t.followed)}
		for _, process := range []string{"kube-apiserver", "etcd", "controller"} {
			row = append(row, milliseconds(t.cpu[process]/time.Duration(t.Operations)))
		}
	}
	return append(row, fmt.Sprint(t.people.Operations), fmt.Sprint(t.again), milliseconds(t.people.P50), milliseconds(t.people.P99))
}

// rateOf returns the rate of all turns together.
func rateOf(turns []manyTurn) float64 {
	var all measure.Sample
	for _, turn := range turns {
		all.Operations, all.Elapsed = all.Operations+turn.Operations, all.Elapsed+turn.Elapsed
	}
	return all.Rate()
}

// cpuOf returns the processor time per finding of all turns together, in milliseconds.
func cpuOf(turns []manyTurn) float64 {
	var used time.Duration
	findings := 0
	for _, turn := range turns {
		for _, time := range turn.cpu {
			used += time
		}
		findings += turn.Operations
	}
	return inFindings(used, findings)
}

// ratioRow returns a row with the ratio of a turn's rate to that of the bare writes.
func (m *many) ratioRow(what, turn, bare string) report.Row {
	rate, first, last := rateOf(m.turns[turn]), m.turns[bare][0].Rate(), m.turns[bare][1].Rate()
	// A shared machine may be twice as fast in one half: the worse ratio decides whether the target is
	// reached.
	row := report.AtLeast(what, manyWanted, min(rate/first, rate/last), "%.2f")
	row.Measured = fmt.Sprintf("%.2f", rate/rateOf(m.turns[bare])) + fmt.Sprintf(" (%.2f and %.2f; CPU %.2f)", rate/first, rate/last,
		cpuOf(m.turns[bare])/cpuOf(m.turns[turn]))
	return row.InSummary()
}

// delayRow returns a row with the response times of a person's PATCH during a turn, compared with
// deciding alone and with the bare writes.
func (m *many) delayRow(turn, bare string) report.Row {
	var alone measure.Sample
	for _, t := range m.turns[aloneTurn] {
		alone.P50, alone.P99 = alone.P50+t.people.P50, alone.P99+t.people.P99
	}
	count := time.Duration(len(m.turns[aloneTurn]))
	alone.P50, alone.P99 = alone.P50/count, alone.P99/count
	beside := m.turns[turn][0].people
	var plain []string
	for _, t := range m.turns[bare] {
		plain = append(plain, fmt.Sprintf("%s and %s", milliseconds(t.people.P50), milliseconds(t.people.P99)))
	}
	return report.Row{
		Measure: fmt.Sprintf("p50 and p99 of a person's PATCH beside %s", turn),
		Measured: fmt.Sprintf("%s and %s (%.1f and %.1f times as alone: %s and %s; beside %s %s)",
			milliseconds(beside.P50), milliseconds(beside.P99), float64(beside.P50)/float64(alone.P50),
			float64(beside.P99)/float64(alone.P99), milliseconds(alone.P50), milliseconds(alone.P99), bare, strings.Join(plain, ", then ")),
		Key: true,
	}
}

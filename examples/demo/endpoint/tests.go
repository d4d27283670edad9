package main

import (
	"fmt"
	"strings"
)

const firstTest = `package stats

import "testing"

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 3},
	} {
		if got := Median(c.xs); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.xs, got, c.want)
		}
	}
}

func TestMean(t *testing.T) {
	if got := Mean([]float64{7}); got != 7 {
		t.Errorf("Mean = %v, want 7", got)
	}
}
`

// writeTests writes tests, one of which expects a wrong result.
func writeTests() []turn {
	return []turn{
		calling("The code first.", readFile("stats.go")),
		calling("Now the tests.", toolCall{"write_file", map[string]any{"path": "stats_test.go", "content": firstTest}}),
		written("Median, also of no values and of an even number; Mean."),
	}
}

// correctTest corrects the test's expectation, because the code is right.
func correctTest() []turn {
	return []turn{
		calling("The mean of 2 and 3 is 2.5: the test is wrong.",
			editFile("stats_test.go", "{[]float64{4, 1, 3, 2}, 3},", "{[]float64{4, 1, 3, 2}, 2.5},")),
		written("The expectation is right now."),
	}
}

// strengthen adds a value that detects the planted bug.
func strengthen() []turn {
	return []turn{
		calling("One value cannot tell a sum from a mean.",
			editFile("stats_test.go", "Mean([]float64{7}); got != 7", "Mean([]float64{1, 2, 6}); got != 3"),
			editFile("stats_test.go", "want 7", "want 3")),
		written("Mean of several values."),
	}
}

func written(summary string) turn {
	return ending("Done.", field{"$status", "written"}, field{"summary", summary}, field{"files", []string{"stats_test.go"}})
}

const (
	rightMean   = "return sum / float64(len(xs))"
	plantedMean = "return sum"
)

// plantBug breaks the code, runs the tests, and restores the code.
func plantBug() []turn {
	return []turn{
		calling("What if Mean forgot to divide?", editFile("stats.go", rightMean, plantedMean), goTest("-count=1 ")),
		calling("Back to what it was.", editFile("stats.go", plantedMean, rightMean), goTest("-count=1 ")),
		func(c conversation) reply {
			planted := "stats.go:12: " + plantedMean
			if len(c.results) > 1 && strings.Contains(c.results[1], "--- FAIL") {
				return ending("A test noticed it.", field{"$status", "strong"}, field{"summary", fmt.Sprintf("Noticed: %s", planted)})(c)
			}
			return ending("No test noticed it.", field{"$status", "weak"}, field{"missed", []string{planted}})(c)
		},
	}
}

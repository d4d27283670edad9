package main

// plan examines the project, runs the tests, and plans the fix.
func plan() []turn {
	return []turn{
		calling("I look at the project first.", toolCall{"list_dir", map[string]any{}}, readFile("README.md")),
		calling("The tests say what is expected.", readFile("stats_test.go"), readFile("stats.go")),
		calling("Now what fails.", goTest("")),
		func(c conversation) reply {
			return ending("The test run says: "+c.testResult()+".\n\n"+planned,
				field{"$status", "ready"},
				field{"cause", "stats.go:23: Median returns the value at the middle index without sorting, and ignores that an even number of values has two in the middle."},
				field{"plan", "1. In stats.go, sort the values at the beginning of Median.\n2. For an even number of values return the mean of the two in the middle.\n"},
				field{"files", []string{"stats.go"}})(c)
		},
	}
}

const planned = "Median takes the middle of the list as it comes, so it is right for sorted lists of odd length only."

const (
	unsorted = `	return xs[len(xs)/2]
}`
	sorted = `	slices.Sort(xs)
	mid := len(xs) / 2
	if len(xs)%2 == 0 {
		return (xs[mid-1] + xs[mid]) / 2
	}
	return xs[mid]
}`
	withoutImport = "package stats\n\n// Mean"
	withImport    = "package stats\n\nimport \"slices\"\n\n// Mean"
)

// firstFix makes the tests pass, with a flaw that they don't detect.
func firstFix() []turn {
	return []turn{
		calling("I read the code before I change it.", readFile("stats.go")),
		calling("Sort, and treat an even number of values.",
			editFile("stats.go", withoutImport, withImport), editFile("stats.go", unsorted, sorted)),
		calling("Do the tests pass?", goTest("")),
		saying(`---
$status: done
summary: Median sorts its values and takes the mean of the two in the middle.
filesChanged: [stats.go]
testResult: %q
---
Median now sorts, and an even number of values gives the mean of the two in the
middle.
`, conversation.testResult),
	}
}

// reject finds the flaw.
func reject() []turn {
	return []turn{
		calling("I read what was changed.", readFile("stats.go")),
		calling("And run the tests myself.", goTest("-count=1 ")),
		func(c conversation) reply {
			if !c.passed() {
				return testsFail(c)
			}
			return reply{text: `---
$status: rejected
comments:
  - "stats.go:25: slices.Sort(xs) sorts the slice of the caller. A function that only computes must not reorder its argument: sort a copy."
  - "stats_test.go: no test would notice. Add one that compares the argument before and after Median."
---
The tests pass, but Median now has a side effect: whoever calls it finds the own
list in another order afterwards.
`}
		},
	}
}

const (
	sortsCallers = "\tslices.Sort(xs)\n"
	sortsCopy    = "\txs = slices.Clone(xs) // the caller's list keeps its order\n\tslices.Sort(xs)\n"

	testBefore = "package stats\n\nimport \"testing\"\n"
	testAfter  = `package stats

import (
	"slices"
	"testing"
)

func TestMedianKeepsTheOrderOfItsArgument(t *testing.T) {
	xs := []float64{3, 1, 2}
	Median(xs)
	if want := []float64{3, 1, 2}; !slices.Equal(xs, want) {
		t.Errorf("after Median the list is %v, want %v", xs, want)
	}
}
`
)

// secondFix fixes the flaw and adds the missing test.
func secondFix() []turn {
	return []turn{
		calling("The reviewer is right. A test first, to see it fail.", editFile("stats_test.go", testBefore, testAfter), goTest("")),
		calling("It fails as expected. Now the copy.", editFile("stats.go", sortsCallers, sortsCopy)),
		calling("And again.", goTest("")),
		saying(`---
$status: done
summary: Median sorts a copy, so the list of the caller keeps its order; a test holds it to that.
filesChanged: [stats.go, stats_test.go]
testResult: %q
---
The new test failed before the change and passes now.
`, conversation.testResult),
	}
}

// approve checks again.
func approve() []turn {
	return []turn{
		calling("Both files again.", readFile("stats.go"), readFile("stats_test.go")),
		calling("", goTest("-count=1 ")),
		func(c conversation) reply {
			if !c.passed() {
				return testsFail(c)
			}
			return reply{text: `---
$status: approved
summary: Median is right for lists in any order and of any length, and leaves its argument alone.
---
The copy is sorted, not the argument; the new test proves it; no test was weakened.
`}
		},
	}
}

// testsFail is a reviewer's answer if the tests fail.
func testsFail(c conversation) reply {
	return saying("---\n$status: rejected\ncomments: [%q]\n---\nThe tests are red.\n", func(c conversation) string {
		return "the tests do not pass: " + c.testResult()
	})(c)
}

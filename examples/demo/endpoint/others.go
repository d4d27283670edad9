package main

import (
	"regexp"
	"strings"
)

// readDiff finds an unrequested change in a diff.
func readDiff() []turn {
	return []turn{
		calling("The diff first.", toolCall{"run_command", map[string]any{"command": "git show --stat --patch HEAD"}}),
		func(c conversation) reply {
			if !strings.Contains(c.lastResult(), "slices.Sort(xs)") {
				return ending("I have read it.", field{"$status", "clean"}, field{"change", "It changes no code that computes."})(c)
			}
			return ending("I have read the diff.", field{"$status", "found"},
				field{"change", "Median sorts its argument."},
				field{"findings", []map[string]string{{
					"place": "stats.go:25", "problem": "The list of the caller is reordered.",
					"proof": "xs := []float64{3, 1, 2}; Median(xs); xs is now {1, 2, 3}",
				}}})(c)
		},
	}
}

// judge decides on the reader's findings.
func judge() []turn {
	return []turn{ending("The proof proves it.", field{"$status", "change"},
		field{"remarks", []string{"stats.go:25: sort a copy, not the argument."}})}
}

func argue(text string) []turn {
	return []turn{ending("I have said it.", field{"$status", "argued"}, field{"argument", text})}
}

func concede(text string) []turn {
	return []turn{ending("You are right.", field{"$status", "conceded"}, field{"argument", text})}
}

var webAddress = regexp.MustCompile(`https?://[^\s"]+`)

// research fetches the page in the task, if it can.
func research() []turn {
	return []turn{
		func(c conversation) reply {
			if !c.has("fetch_url") {
				return ending("I cannot look.", field{"$status", "offline"}, field{"reason", "There is no tool to fetch pages with."})(c)
			}
			url := webAddress.FindString(c.told)
			return calling("I read the page.", toolCall{"fetch_url", map[string]any{"url": url}})(c)
		},
		func(c conversation) reply {
			const answer = "The answer is "
			_, found, ok := strings.Cut(c.lastResult(), answer)
			if !ok {
				return ending("It cannot be read.", field{"$status", "offline"}, field{"reason", firstLine(c.lastResult())})(c)
			}
			found, _, _ = strings.Cut(found, ".")
			return ending("I have read it.", field{"$status", "answered"}, field{"answer", found},
				field{"quotes", []map[string]string{{"url": webAddress.FindString(c.told), "text": answer + found + "."}}})(c)
		},
	}
}

// asTold matches the value that the edge passes on; a value that contains Markdown is fenced.
var asTold = regexp.MustCompile(`The answer: (?:<edge-value [^>]*>\n)?(.*)`)

// check accepts the quoted value.
func check() []turn {
	return []turn{func(c conversation) reply {
		answer := ""
		if m := asTold.FindStringSubmatch(c.asked); m != nil {
			answer = m[1]
		}
		return ending("It is quoted.", field{"$status", "holds"}, field{"answer", answer})(c)
	}}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

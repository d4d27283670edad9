package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report is everything that one run of the program says.
type report struct {
	Machine machine  `json:"machine"`
	Rows    []result `json:"rows"`
}

// unmeasured are the rows that could not be measured.
func (r report) unmeasured() (names []string) {
	for _, row := range r.Rows {
		if row.Error != "" {
			names = append(names, row.Name)
		}
	}
	return names
}

func (r report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// table prints a table for each family, which is Markdown and can be read as it is.
func (r report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, r.Machine)
	for i, row := range r.Rows {
		if i == 0 || r.Rows[i-1].Family != row.Family {
			fmt.Fprintf(t, "\n| %s\t| against\t| min\t| median\t| p10–p90\t| promise\t| amounts\t|\n%s|\n", row.Family, strings.Repeat("| ---\t", 7))
		}
		if row.Error != "" {
			fmt.Fprintf(t, "| %s\t| NOT MEASURED: %s\t|\t|\t|\t|\t|\n", row.Name, strings.ReplaceAll(row.Error, "\n", " "))
			continue
		}
		fmt.Fprintf(t, "| %s\t| %s\t| %.2f\t| %.2f\t| %.2f–%.2f\t| %s\t| %s\t|\n", row.Name, row.Against,
			row.Min, row.Median, row.P10, row.P90, row.promised(), row.amounts())
	}
	return t.Flush()
}

func (r result) promised() string {
	if r.Promise == 0 {
		return ""
	}
	text := "≤ " + strconv.FormatFloat(r.Promise, 'f', -1, 64)
	if r.Missed {
		text += " MISSED"
	}
	return text
}

// amounts shows the subject before its anchor, and what grows by its size.
func (r result) amounts() string {
	if r.Kind == ratio {
		return fmt.Sprintf("%s / %s %s", short(r.Amounts[1].Median), short(r.Amounts[0].Median), r.Unit)
	}
	var parts []string
	for _, a := range r.Amounts {
		parts = append(parts, fmt.Sprintf("%d: %s", a.Size, short(a.Median)))
	}
	return strings.Join(parts, ", ") + " " + r.Unit
}

// short shows three digits that count.
func short(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

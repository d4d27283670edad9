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

// table prints one table with a heading for each family.
func (r report) table(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n", r.Machine); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, row := range r.Rows {
		if i == 0 || r.Rows[i-1].Family != row.Family {
			fmt.Fprintf(t, "\n%s\tagainst\tmin\tmedian\tp10–p90\tpromise\tamounts\t\n", strings.ToUpper(row.Family))
		}
		if row.Error != "" {
			fmt.Fprintf(t, "%s\tNOT MEASURED: %s\n", row.Name, strings.ReplaceAll(row.Error, "\n", " "))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%.2f\t%.2f–%.2f\t%s\t%s\t%s\n",
			row.Name, row.Against, row.Min, row.Median, row.P10, row.P90, row.promised(), row.amounts(), row.verdict())
	}
	return t.Flush()
}

// markdown prints the tables for docs/performance.md.
func (r report) markdown(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", r.Machine)
	for i, row := range r.Rows {
		if i == 0 || r.Rows[i-1].Family != row.Family {
			fmt.Fprintf(&out, "\n| %s | against | min | median | p10–p90 | promise | amounts |\n| --- | --- | --- | --- | --- | --- | --- |\n", row.Family)
		}
		if row.Error != "" {
			fmt.Fprintf(&out, "| %s | not measured |\n", row.Name)
			continue
		}
		fmt.Fprintf(&out, "| %s | %s | %.2f | %.2f | %.2f–%.2f | %s | %s |\n", row.Name, row.Against,
			row.Min, row.Median, row.P10, row.P90, strings.TrimSpace(row.promised()+" "+row.verdict()), row.amounts())
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (r result) promised() string {
	if r.Promise == 0 {
		return ""
	}
	return "≤ " + strconv.FormatFloat(r.Promise, 'f', -1, 64)
}

func (r result) verdict() string {
	if r.Missed {
		return "MISSED"
	}
	return ""
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

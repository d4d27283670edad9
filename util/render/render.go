// Package render turns a result into what the user asked to see: JSON, YAML or
// text. All three come from the same value, so they cannot drift apart.
package render

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/yamltext"
)

// Format is how a result is printed.
type Format string

// The formats.
const (
	JSON Format = "json"
	YAML Format = "yaml"
	Text Format = "text"
)

// Formats lists the names that a user may type.
func Formats() []string { return []string{string(JSON), string(YAML), string(Text)} }

// ParseFormat reads a format's name. raw-json and raw-yaml are the original's
// words for the same.
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.TrimPrefix(s, "raw-")); f {
	case JSON, YAML:
		return f, nil
	case Text:
		if s == string(Text) {
			return f, nil
		}
	}
	return "", fmt.Errorf("unknown format %q: want %s", s, strings.Join(Formats(), ", "))
}

// Print writes a value. text writes its text form; nil prints the value as
// [TextOf] does, so that every value has one.
func Print(w io.Writer, f Format, value any, text func(io.Writer) error) error {
	switch {
	case f == Text && text != nil:
		return text(w)
	case f == Text:
		return printYAML(w, value)
	case f == YAML:
		return printYAML(w, value)
	}
	data, err := marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// PrintList is [Print] of a list of which only one value is held at a time; text is
// required. The values end early if ctx does: its cause is then the error, and JSON is
// left open, so that nobody takes it for the whole list.
func PrintList[T any](ctx context.Context, w io.Writer, f Format, values iter.Seq[T],
	text func(io.Writer) error) error {
	if f == Text {
		return cmp.Or(text(w), context.Cause(ctx))
	}
	out := bufio.NewWriterSize(w, 64<<10)
	n := 0
	for v := range values {
		var data []byte
		var err error
		if f == JSON {
			_ = out.WriteByte("[,"[min(n, 1)]) // what fails is told by Flush
			data, err = marshal(v)
			data = bytes.TrimSuffix(data, []byte("\n"))
		} else {
			data, err = asYAML([]T{v})
		}
		if err != nil {
			return err
		}
		n++
		if _, err := out.Write(data); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return cmp.Or(out.Flush(), context.Cause(ctx))
	case n == 0:
		_, _ = out.WriteString("[]\n")
	case f == JSON:
		_, _ = out.WriteString("]\n")
	}
	return out.Flush()
}

// marshal is compact JSON with a newline, without HTML escapes: results are
// read by people and by programs, never by browsers.
func marshal(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return buf.Bytes(), nil
}

func printYAML(w io.Writer, value any) error {
	out, err := asYAML(value)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// asYAML goes through JSON, so that the keys and their order are the same.
func asYAML(value any) ([]byte, error) {
	data, err := marshal(value)
	if err != nil {
		return nil, err
	}
	out, err := yamlFromJSON(data)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return out, nil
}

// Count is a number with its noun: "1 step", "3 steps".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Duration is a time for people: 999ms, 1.5s, 1m02s.
func Duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case ms < 1000:
		return fmt.Sprintf("%dms", max(ms, 0))
	case ms < 60_000:
		return fmt.Sprintf("%.1fs", float64(ms/100)/10)
	}
	d = d.Round(time.Second)
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case hours > 0 && minutes == 0:
		return fmt.Sprintf("%dh", hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case seconds == 0:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%dm%ds", minutes, seconds)
}

// Size is a number of bytes for people.
func Size(n int64) string {
	const step = 1024
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= step && u < len(units)-1 {
		f, u = f/step, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// yamlFromJSON writes JSON as YAML with the same keys in the same order.
func yamlFromJSON(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := ordered(dec)
	if err != nil {
		return nil, err
	}
	return yamltext.Marshal(v)
}

// ordered reads the next JSON value, objects as mappings in their order.
func ordered(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		return orderedMap(dec)
	case json.Delim('['):
		return orderedList(dec)
	}
	return tok, nil
}

func orderedMap(dec *json.Decoder) (any, error) {
	m := yamltext.Map{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		value, err := ordered(dec)
		if err != nil {
			return nil, err
		}
		m = append(m, yamltext.Entry{Key: fmt.Sprint(key), Value: value})
	}
	_, err := dec.Token() // the closing brace
	return m, err
}

func orderedList(dec *json.Decoder) (any, error) {
	l := yamltext.List{}
	for dec.More() {
		value, err := ordered(dec)
		if err != nil {
			return nil, err
		}
		l = append(l, value)
	}
	_, err := dec.Token() // the closing bracket
	return l, err
}

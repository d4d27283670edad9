// Package render formats a result as JSON, YAML or text. All three come from the same value, so they can't
// diverge.
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

// Format is an output format.
type Format string

// The formats.
const (
	JSON Format = "json"
	YAML Format = "yaml"
	Text Format = "text"
)

// Formats returns the names that a user can type.
func Formats() []string { return []string{string(JSON), string(YAML), string(Text)} }

// ParseFormat parses a format's name. raw-json and raw-yaml are the original's names for JSON and YAML.
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

// Print writes a value. text writes its text form; if it is nil, Print uses [TextOf].
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

// PrintList is like [Print] for a list, and keeps only one value in memory; text is required. If ctx is done
// before the end, its cause is returned and JSON output is left unterminated, so that it can't be mistaken
// for the complete list.
func PrintList[T any](ctx context.Context, w io.Writer, f Format, values iter.Seq[T],
	text func(io.Writer) error) error {
	if f == Text {
		return cmp.Or(text(w), context.Cause(ctx))
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var line bytes.Buffer
	enc := encoder(&line)
	n := 0
	for v := range values {
		var data []byte
		var err error
		if f == JSON {
			_ = out.WriteByte("[,"[min(n, 1)]) // Flush reports the error
			line.Reset()
			if err = enc.Encode(v); err != nil {
				err = fmt.Errorf("encode result: %w", err)
			}
			data = bytes.TrimSuffix(line.Bytes(), []byte("\n"))
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

// marshal returns compact JSON with a newline and without HTML escapes, because results aren't embedded in
// HTML.
func marshal(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := encoder(&buf)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return buf.Bytes(), nil
}

func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

func printYAML(w io.Writer, value any) error {
	out, err := asYAML(value)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// asYAML converts a value by way of JSON, so that the keys and their order are the same.
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

// Count formats a number with its noun: "1 step", "3 steps".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Duration formats a duration for people: 999ms, 1.5s, 1m02s.
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

// Size formats a number of bytes for people.
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

// yamlFromJSON converts JSON to YAML with the same keys in the same order.
func yamlFromJSON(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := ordered(dec)
	if err != nil {
		return nil, err
	}
	return yamltext.Marshal(v)
}

// ordered decodes the next JSON value; objects become ordered mappings.
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

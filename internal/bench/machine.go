package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
)

// machine is where the figures come from: without it they mean little.
type machine struct {
	Go         string `json:"go"`
	System     string `json:"system"`
	Processor  string `json:"processor,omitempty"`
	Processors int    `json:"processors"`
	Load       string `json:"load,omitempty"` // of the last minute, when the run began
	Flush      string `json:"flush"`          // how steps are made durable here, and why
}

// here describes this machine; dir is where the figures are taken.
func here(dir string) machine {
	mode, why := durable.SafeMode(dir, dir)
	return machine{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Processor: field("/proc/cpuinfo", "model name"), Processors: runtime.NumCPU(),
		Load: firstWord("/proc/loadavg"), Flush: fmt.Sprintf("%s, because %s", mode, why),
	}
}

// String is the line above the table.
func (m machine) String() string {
	parts := []string{m.Go, m.System, fmt.Sprintf("%d processors", m.Processors)}
	if m.Processor != "" {
		parts = append(parts, m.Processor)
	}
	if m.Load != "" {
		parts = append(parts, "load "+m.Load)
	}
	return strings.Join(append(parts, "flush "+m.Flush), "; ")
}

// field finds "name : value" in a file of the kernel's; "" where there is none.
func field(path, name string) string {
	data, _ := os.ReadFile(path) // other systems do not have it
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstWord(path string) string {
	data, _ := os.ReadFile(path) // other systems do not have it
	word, _, _ := strings.Cut(string(data), " ")
	return word
}

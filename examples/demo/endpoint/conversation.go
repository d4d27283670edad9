package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// request contains the parts of a request that the script uses.
type request struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// conversation is the position of a request in the script.
type conversation struct {
	role    string   // role that the agent plays
	tools   []string // tools that it has
	asked   string   // last prompt
	told    string   // all prompts
	visit   int      // from 1: number of prompts for this role
	turn    int      // from 0: number of answers since the last prompt
	results []string // results of its tool calls
}

var roleName = regexp.MustCompile(`You play the role "(\w+)"`)

// read determines the position of a conversation.
func read(r request) (conversation, error) {
	var c conversation
	for _, t := range r.Tools {
		c.tools = append(c.tools, t.Function.Name)
	}
	for _, m := range r.Messages {
		var content string
		_ = json.Unmarshal(m.Content, &content) // null for a message with only calls
		switch m.Role {
		case "system":
			if found := roleName.FindStringSubmatch(content); found != nil {
				c.role = found[1]
			}
		case "user":
			c.visit++
			c.turn, c.results, c.asked = 0, nil, content
			c.told += content + "\n"
		case "assistant":
			c.turn++
		case "tool":
			c.results = append(c.results, content)
		}
	}
	if c.role == "" || c.visit == 0 {
		return c, fmt.Errorf("this endpoint only plays the script of the uwf demo: it needs a conversation of one of uwf's own agents in a role of the examples")
	}
	return c, nil
}

// testResult returns the last line of the last test run, as go prints it.
func (c conversation) testResult() string {
	for i := len(c.results) - 1; i >= 0; i-- {
		for line := range strings.Lines(c.results[i]) {
			if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "FAIL\t") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
	}
	return "the tests did not run"
}

// has reports whether the agent has a tool.
func (c conversation) has(tool string) bool { return slices.Contains(c.tools, tool) }

// lastResult returns the result of the last tool call.
func (c conversation) lastResult() string {
	if len(c.results) == 0 {
		return ""
	}
	return c.results[len(c.results)-1]
}

// passed reports whether the last test run passed.
func (c conversation) passed() bool { return strings.HasPrefix(c.testResult(), "ok ") }

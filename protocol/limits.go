package protocol

import (
	"fmt"
	"slices"
	"time"
)

// Limits bound a run; zero means no limit of its own. [AllLimits] lists the fields.
type Limits struct {
	MaxSteps         int `json:"maxSteps,omitempty"`
	MaxVisitsPerRole int `json:"maxVisitsPerRole,omitempty"`

	// Version 2.
	MaxCostUSD float64 `json:"maxCostUsd,omitempty"`
	MaxTokens  int64   `json:"maxTokens,omitempty"`
	MaxTimeMs  int64   `json:"maxTimeMs,omitempty"`
}

// LimitsConfig are the limits of workflows without their own, as config.yaml has them;
// zero means the default.
type LimitsConfig struct {
	MaxSteps         int     `json:"maxSteps,omitempty"`
	MaxVisitsPerRole int     `json:"maxVisitsPerRole,omitempty"`
	MaxCostUSD       float64 `json:"maxCostUsd,omitempty"`        // of a whole run; 0: any
	MaxTokens        int64   `json:"maxTokens,omitempty"`         // read and written by a whole run; 0: any number
	MaxTime          string  `json:"maxTime,omitempty" is:"span"` // of all steps of a run, such as "2h"; "": any

	PerDay *DayLimits `json:"perDay,omitempty"` // of a home, whatever workflows say; nil: none
}

// DayLimits bound what all agents of a home may cost until midnight; zero means any.
type DayLimits struct {
	CostUSD float64 `json:"costUsd,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// DefaultMaxSteps bounds a run when neither workflow nor config does.
const DefaultMaxSteps = 100

// Limit is one field of [Limits]. Reading, storing, merging, comparing and showing limits
// goes through [AllLimits]; what a limit means is decided in package moderator.
type Limit struct {
	Key     string // in workflow files and in config.yaml
	Stored  string // in the node of a workflow
	Unit    Unit
	Of      string // what is counted, in a list of amounts
	Help    string // the same, on its own
	Version int    // of the first workflow node that can say it
	field   func(*Limits) any
}

// Unit is what a limit is measured in.
type Unit int

// The units.
const (
	UnitCount Unit = iota
	UnitTokens
	UnitDollars
	UnitMs
)

// AllLimits lists the limits in the order in which they are shown.
func AllLimits() []Limit {
	return []Limit{
		{"maxSteps", "maxSteps", UnitCount, "steps", "Steps of a thread", 1,
			func(l *Limits) any { return &l.MaxSteps }},
		{"maxVisitsPerRole", "maxVisitsPerRole", UnitCount, "steps of a role", "Steps of each role", 1,
			func(l *Limits) any { return &l.MaxVisitsPerRole }},
		{"maxCostUsd", "maxCostUsd", UnitDollars, "in all", "US dollars that a whole run may cost", 2,
			func(l *Limits) any { return &l.MaxCostUSD }},
		{"maxTokens", "maxTokens", UnitTokens, "tokens in all", "Tokens that a whole run may read and write", 2,
			func(l *Limits) any { return &l.MaxTokens }},
		{"maxTime", "maxTimeMs", UnitMs, "of work in all", "Time that all steps of a run may take, such as 2h", 2,
			func(l *Limits) any { return &l.MaxTimeMs }},
	}
}

// Get is the limit's value: an int64, or a float64 of dollars.
func (x Limit) Get(l Limits) any {
	switch p := x.field(&l).(type) {
	case *int:
		return int64(*p)
	case *int64:
		return *p
	case *float64:
		return *p
	}
	panic(fmt.Sprintf("protocol: limit %s has no number", x.Key))
}

// Number is the limit's value as a float64, which holds each of them exactly.
func (x Limit) Number(l Limits) float64 {
	if n, ok := x.Get(l).(int64); ok {
		return float64(n)
	}
	return x.Get(l).(float64)
}

// Set changes the limit's value.
func (x Limit) Set(l *Limits, n float64) {
	switch p := x.field(l).(type) {
	case *int:
		*p = int(n)
	case *int64:
		*p = int64(n)
	case *float64:
		*p = n
	}
}

// Or fills up what l leaves open.
func (l Limits) Or(defaults Limits) Limits {
	for _, x := range AllLimits() {
		if x.Number(l) == 0 {
			x.Set(&l, x.Number(defaults))
		}
	}
	return l
}

// Complete reports whether none of the limits is left open.
func (l Limits) Complete() bool {
	for _, x := range AllLimits() {
		if x.Number(l) == 0 {
			return false
		}
	}
	return true
}

// Negative reports whether one of the limits is below zero, or no number.
func (l Limits) Negative() bool {
	return slices.ContainsFunc(AllLimits(), func(x Limit) bool { return !(x.Number(l) >= 0) })
}

// Narrower takes the smaller one of each two limits.
func (l Limits) Narrower(m Limits) Limits {
	for _, x := range AllLimits() {
		if n := x.Number(m); n > 0 && (x.Number(l) == 0 || n < x.Number(l)) {
			x.Set(&l, n)
		}
	}
	return l
}

// version is that of the workflow node that the limits need.
func (l Limits) version() int {
	version := 1
	for _, x := range AllLimits() {
		if x.Number(l) != 0 {
			version = max(version, x.Version)
		}
	}
	return version
}

// Limits are the same limits as a workflow has them. A time that cannot be read is an
// error with the code invalid.
func (c LimitsConfig) Limits() (Limits, error) {
	l := Limits{MaxSteps: c.MaxSteps, MaxVisitsPerRole: c.MaxVisitsPerRole, MaxCostUSD: c.MaxCostUSD,
		MaxTokens: c.MaxTokens}
	if c.MaxTime == "" {
		return l, nil
	}
	t, err := time.ParseDuration(c.MaxTime)
	if err != nil || t < 0 {
		return l, &Error{Code: CodeInvalid, Message: fmt.Sprintf("limits.maxTime must be a time such as 30m or 2h, got %q",
			c.MaxTime)}
	}
	l.MaxTimeMs = t.Milliseconds()
	return l, nil
}

// Config are the same limits as config.yaml has them.
func (l Limits) Config() LimitsConfig {
	c := LimitsConfig{MaxSteps: l.MaxSteps, MaxVisitsPerRole: l.MaxVisitsPerRole, MaxCostUSD: l.MaxCostUSD,
		MaxTokens: l.MaxTokens}
	if l.MaxTimeMs > 0 {
		c.MaxTime = Span(time.Duration(l.MaxTimeMs) * time.Millisecond)
	}
	return c
}

package jsonschema

// quickPart knows the keywords that have schemas in them.
func quickPart(s map[string]any, name string, arg any) quick {
	switch name {
	case "properties":
		return quickProperties(s)
	case "patternProperties", "additionalProperties":
		if _, ok := s["properties"]; ok || name == "additionalProperties" && s["patternProperties"] != nil {
			return nothing // it is seen to with the other one
		}
		return quickProperties(s)
	case "propertyNames":
		return quickNames(newQuick(arg))
	case "items":
		return quickItems(newQuick(arg))
	case "contains":
		return quickContains(newQuick(arg))
	case "allOf":
		return both(quickList(arg))
	case "anyOf":
		return quickAnyOf(quickList(arg))
	case "oneOf":
		return quickOneOf(quickList(arg))
	case "not":
		return quickNot(newQuick(arg))
	case "if":
		return quickIf(s)
	case "then", "else":
		return nothing // if sees to it
	}
	return nil
}

// nothing demands nothing.
func nothing(any) answer { return fits }

func quickList(arg any) []quick {
	list, _ := arg.([]any)
	all := make([]quick, len(list))
	for i, schema := range list {
		all[i] = newQuick(schema)
	}
	return all
}

// named is what an object demands of its properties.
type named struct {
	known    map[string]quick
	patterns []patterned
	others   quick // of those that are not named and match no pattern
}

type patterned struct {
	matches func(string) answer
	demands quick
}

// quickProperties sees to properties, patternProperties and additionalProperties
// together.
func quickProperties(s map[string]any) quick {
	n := named{known: map[string]quick{}, others: nothing}
	properties, _ := s["properties"].(map[string]any)
	for name, schema := range properties {
		n.known[name] = newQuick(schema)
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for pattern, schema := range patterns {
		n.patterns = append(n.patterns, patterned{matcher(pattern), newQuick(schema)})
	}
	switch additional := s["additionalProperties"].(type) {
	case nil:
	case bool:
		if !additional {
			n.others = func(any) answer { return fails }
		}
	default:
		n.others = newQuick(additional)
	}
	return n.check
}

func (n named) check(v any) answer {
	m, _ := v.(map[string]any)
	result := fits
	for name, item := range m {
		switch n.property(name, item) {
		case fails:
			return fails
		case unsure:
			result = unsure
		}
	}
	return result
}

func (n named) property(name string, item any) answer {
	check, isKnown := n.known[name]
	result := fits
	if isKnown {
		result = check(item)
	}
	for _, p := range n.patterns {
		switch p.matches(name) {
		case fails:
			continue
		case unsure:
			return unsure
		}
		isKnown = true
		switch p.demands(item) {
		case fails:
			return fails
		case unsure:
			if result == fits {
				result = unsure
			}
		}
	}
	if !isKnown {
		return n.others(item)
	}
	return result
}

func quickNames(name quick) quick {
	return func(v any) answer {
		m, _ := v.(map[string]any)
		result := fits
		for key := range m {
			switch name(key) {
			case fails:
				return fails
			case unsure:
				result = unsure
			}
		}
		return result
	}
}

func quickItems(item quick) quick {
	return func(v any) answer {
		list, _ := v.([]any)
		result := fits
		for _, element := range list {
			switch item(element) {
			case fails:
				return fails
			case unsure:
				result = unsure
			}
		}
		return result
	}
}

func quickContains(item quick) quick {
	return func(v any) answer {
		list, ok := v.([]any)
		if !ok {
			return fits
		}
		result := fails
		for _, element := range list {
			switch item(element) {
			case fits:
				return fits
			case unsure:
				result = unsure
			}
		}
		return result
	}
}

func quickAnyOf(branches []quick) quick {
	return func(v any) answer {
		result := fails
		for _, branch := range branches {
			switch branch(v) {
			case fits:
				return fits
			case unsure:
				result = unsure
			}
		}
		return result
	}
}

func quickOneOf(branches []quick) quick {
	return func(v any) answer {
		fit, open := 0, 0
		for _, branch := range branches {
			switch branch(v) {
			case fits:
				fit++
			case unsure:
				open++
			}
		}
		switch {
		case fit > 1:
			return fails
		case open > 0:
			return unsure
		}
		return sure(fit == 1)
	}
}

func quickNot(inner quick) quick {
	return func(v any) answer {
		switch inner(v) {
		case fits:
			return fails
		case fails:
			return fits
		}
		return unsure
	}
}

func quickIf(s map[string]any) quick {
	condition, then, otherwise := newQuick(s["if"]), nothing, nothing
	if schema, ok := s["then"]; ok {
		then = newQuick(schema)
	}
	if schema, ok := s["else"]; ok {
		otherwise = newQuick(schema)
	}
	return func(v any) answer {
		switch condition(v) {
		case fits:
			return then(v)
		case fails:
			return otherwise(v)
		}
		if a := then(v); a == otherwise(v) {
			return a
		}
		return unsure
	}
}

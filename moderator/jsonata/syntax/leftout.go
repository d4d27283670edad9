package syntax

// LeftOutCall refuses the name of a function that this package does not have.
func LeftOutCall(src string, v *Variable) error {
	feature, hint, ok := LeftOutFunction(v.Name)
	if !ok {
		return nil
	}
	return leftOut(src, v.At, "$"+v.Name, "$"+v.Name+" ("+feature+")", hint)
}

// LeftOutFunction tells which of JSONata's functions this package does not
// have, why, and what to write instead.
func LeftOutFunction(name string) (feature, hint string, ok bool) {
	switch name {
	case "now", "millis":
		return "dates", "let the role put the time into its answer", true
	case "fromMillis", "toMillis":
		return "dates", "dates as 2026-11-22 compare as texts", true
	case "random", "shuffle":
		return "chance: routing is deterministic", "let the role choose", true
	case "eval":
		return "texts as expressions", "write the expression itself", true
	case "formatNumber", "formatInteger", "parseInteger":
		return "pictures of numbers", "$string and $number convert numbers", true
	case "base64encode", "base64decode", "encodeUrl", "encodeUrlComponent", "decodeUrl", "decodeUrlComponent":
		return "encodings", "", true
	}
	return "", "", false
}

// leftOut refuses a part of JSONata that this package does not have.
func leftOut(src string, at int, token, feature, hint string) *Error {
	return &Error{
		Code: CodeLeftOut, Pos: Position(src, at), Token: token, Hint: hint, Cause: ErrLeftOut,
		Message: "the JSONata of uwf has no " + feature,
	}
}

// Package jsonata evaluates JSONata expressions: the conditions of transition
// lists. It is JSONata 2 without what a condition does not need, and with
// bounds, because a condition comes from a stranger and must neither hang nor
// crash the engine.
//
// # What there is
//
//	paths           a.b, `a b`.c, "a b".c, $, $$, *, **
//	                map over arrays, flatten, unwrap a sequence of one
//	predicates      a[0], a[-1], a[x = 1], a[[0..2]], a[] (keep the array)
//	sorting         list^(a, >b)
//	constructors    [1, 2], [1..9], {"k": v}, list{key: value} (group by key)
//	operators       + - * / % & = != < <= > >= and or in ~> ?? ?: c ? x : y
//	blocks          ($x := 1; $x + 1), /* comments */
//	functions       function($x){$x + 1}, λ($x)<n:n>{$x + 1}, as values,
//	                $f(1, ?) (partial), $f ~> $g (composed)
//	patterns        /…/, /…/im: regular expressions, which are functions too
//	$string …       string length substring substringBefore substringAfter
//	                uppercase lowercase trim pad contains split join replace match
//	$number …       number abs floor ceil round power sqrt formatBase
//	$sum …          sum max min average
//	$boolean …      boolean not exists type error assert
//	$count …        count append reverse distinct zip sort
//	$map …          map filter reduce single each sift
//	$keys …         keys lookup merge spread
//
// # What there is not
//
//	joins                    @ and #
//	the parent operator      %
//	transforms               |…|…|
//	dates                    $now $millis $toMillis $fromMillis
//	chance                   $random $shuffle: routing is deterministic
//	texts as expressions     $eval
//	pictures of numbers      $formatNumber $formatInteger $parseInteger
//	encodings                $base64encode $encodeUrl and their kin
//
// [Parse] refuses all of these by name and position, and also calls of
// functions that do not exist, so an expression that parses can only fail
// because of the values that it meets. [Expr.Reads] tells which parts of the
// input it can look at.
//
// # Bounds
//
// An evaluation is bounded in steps, depth, items and bytes, see [Options]. They
// are counted, not timed: an expression gives the same on every machine. A call
// that is the last thing a function does takes no depth.
//
// Regular expressions are RE2 (package regexp), whose time grows with the text
// and no faster: without lookaround and backreferences. Each character that one
// looks at costs steps.
//
// # Values
//
// Values are JSON values in Go: nil, bool, int64 (or int, uint64), float64,
// json.Number, string, []any, map[string]any, and *[Object] where the order of
// members matters. Numbers are doubles, as in JSONata. A computed result is an
// int64 if it is whole and exact, else a float64; parts of the input come back
// as they went in and must not be changed.
//
// Members of a map are visited in the order of their keys, those of an Object
// and of {…} in the order written. (JavaScript moves keys that look like whole
// numbers to the front; this package does not.)
//
// # Differences
//
// An infinite result, as of 1/0, is an error wherever it is compared or
// returned; JSONata goes on with infinity, and a condition would be true for no
// reason. A path may go on after a predicate on an array constructor
// ([{"a":1}][0].a is 1); JSONata has nothing there.
//
// A regular expression takes a text only, and the places of a match are in
// characters, as in $substring; JSONata counts UTF-16 units. A pattern of $match,
// $replace and $split must be one, not a function that does the same.
package jsonata

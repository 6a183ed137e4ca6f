// Package sarif reads SARIF 2.1.0 as scanners really write it and normalises it: results with their rule, level,
// severity, path and message resolved.
//
// A file that is not SARIF 2.1.0 is refused as a whole. In a valid file, unreadable parts are skipped and counted, so
// one bad result does not affect the others. The only I/O is reading from the given reader.
package sarif

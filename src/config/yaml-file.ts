import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from "yaml";
import { type Environment, type Interpolation, interpolate } from "./interpolation.ts";
import { formatPath, type Path } from "./path.ts";
import type { Problem } from "./problem.ts";
import { yamlProblems } from "./yaml-problem.ts";

/** A configuration file, read but not looked at. */
export interface SourceFile {
  /** As the user named it; problems are reported under it. */
  readonly name: string;
  readonly text: string;
}

/** The values of a YAML file with its variables filled in, and where each of them stands. */
export interface YamlFile {
  /** Undefined: the file is empty, or no YAML. */
  readonly value: unknown;
  /** What is wrong with the file as YAML, and variables that have no value. */
  readonly problems: readonly Problem[];
  /** The variables in the value at `path`, as `${NAME} ${OTHER}`; undefined: there are none. */
  variablesAt(path: Path): string | undefined;
  /** `file:line:column` of the value at `path`, or of its key; of what surrounds it when it is not there. */
  placeOf(path: Path, part: "key" | "value"): string;
}

/** @param read Makes of interpolated text the value that belongs at its path. */
export function readYaml(
  file: SourceFile,
  environment: Environment,
  read: (path: Path, text: string) => unknown,
): YamlFile {
  const lines = new LineCounter();
  // What it would warn of on standard error quotes the text, which may hold a secret.
  const document = parseDocument(file.text, { lineCounter: lines, prettyErrors: false, logLevel: "error" });
  const problems = yamlProblems([...document.errors, ...document.warnings], lines, file.name);
  const references = new Map<Node, string>();
  const placeAt = (node: Node): string => {
    const { line, col } = lines.linePos(node.range?.[0] ?? 0);
    return `${file.name}:${line}:${col}`;
  };

  visit(document, {
    Scalar(key, scalar, ancestors) {
      if (key === "key" || typeof scalar.value !== "string" || !scalar.value.includes("${")) return;
      const filled = interpolate(scalar.value, environment);
      const path = pathOf([...ancestors, scalar]);
      for (const { found, expected } of faultsOf(filled)) {
        problems.push({ path: formatPath(path), source: placeAt(scalar), found, expected });
      }
      if (filled.used.length > 0) references.set(scalar, filled.used.map(reference).join(" "));
      scalar.value = filled.used.length > 0 ? read(path, filled.text) : filled.text;
    },
  });

  const values = document.errors.length > 0 ? { value: undefined } : valuesOf(document);
  if (values === undefined) {
    problems.push({
      path: "",
      source: file.name,
      found: "an alias without its anchor, or too many",
      expected: "each alias after its anchor",
    });
  }
  return {
    value: values?.value,
    problems,
    variablesAt(path) {
      const node = nodeAt(document, path);
      return node && references.get(node);
    },
    placeOf(path, part) {
      const node = (part === "key" ? keyAt(document, path) : undefined) ?? nearestNode(document, path);
      return node === undefined ? file.name : placeAt(node);
    },
  };
}

/** Nothing of the text around the variables is shown: it may be part of a secret. */
function faultsOf({ missing, isMalformed }: Interpolation): Pick<Problem, "found" | "expected">[] {
  const faults = missing.map((name) => ({ found: reference(name), expected: `the variable ${name} to be set` }));
  if (!isMalformed) return faults;
  const expected = `\${NAME} or \${NAME:-default}, or $\${ for a plain \${`;
  return [...faults, { found: "text with a ${ that begins no variable", expected }];
}

function reference(name: string): string {
  return `\${${name}}`;
}

/** Undefined: an alias leads nowhere, or they multiply beyond all reason. */
function valuesOf(document: Document): { readonly value: unknown } | undefined {
  try {
    return { value: document.toJS() };
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

function pathOf(chain: readonly unknown[]): Path {
  return chain.flatMap((node, depth): Path => {
    if (isPair(node) && isScalar(node.key)) return [String(node.key.value)];
    return isSeq(node) ? [node.items.indexOf(chain[depth + 1])] : [];
  });
}

function nodeAt(document: Document, path: Path): Node | undefined {
  return path.reduce<Node | undefined>(
    (node, key) => {
      const child = isCollection(node) ? node.get(key, true) : undefined;
      return isNode(child) ? dereference(document, child) : undefined;
    },
    isNode(document.contents) ? document.contents : undefined,
  );
}

function dereference(document: Document, node: Node): Node | undefined {
  return isAlias(node) ? node.resolve(document) : node;
}

function nearestNode(document: Document, path: Path): Node | undefined {
  for (let length = path.length; length > 0; length--) {
    const node = nodeAt(document, path.slice(0, length));
    if (node !== undefined) return node;
  }
  return undefined;
}

function keyAt(document: Document, path: Path): Node | undefined {
  const parent = nodeAt(document, path.slice(0, -1));
  const key = path.at(-1);
  if (!isMap(parent)) return undefined;
  const keys = parent.items.map((pair) => pair.key);
  return keys.filter(isScalar).find((node) => node.value === key);
}

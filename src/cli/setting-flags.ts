import { type Command, Option } from "commander";
import { type Flags, type Setting, valuesOf } from "../config/index.ts";

/** Gives `command` a flag for each setting that fits one; those of a section stand under a heading of their own. */
export function addSettingFlags(command: Command, settings: readonly Setting[]): void {
  for (const setting of flaggable(settings)) command.addOption(optionOf(setting));
}

/** The flags among `settings` that were given to `command`. */
export function givenFlags(command: Command, settings: readonly Setting[]): Flags {
  const given = flaggable(settings).map((setting) => {
    const value: unknown = command.getOptionValue(optionOf(setting).attributeName());
    return [setting.flag, value] as const;
  });
  return Object.fromEntries(given) as Flags;
}

function flaggable(settings: readonly Setting[]): Setting[] {
  return valuesOf(settings).filter(({ form }) => form !== "structure");
}

function optionOf(setting: Setting): Option {
  const { flag, form, path } = setting;
  const usage = form === "switch" ? flag : `${flag} <${placeholder(setting)}>`;
  const option = new Option(usage, helpText(setting));
  if (form === "list") option.argParser((text: string, earlier: readonly string[] = []) => [...earlier, text]);
  return path.length > 1 ? option.helpGroup(heading(path)) : option;
}

/** A choice is named after its setting: its words are too many for the margin. */
function placeholder({ value, choices, path }: Setting): string {
  return choices.length > 0 ? (path.at(-1) ?? value) : value;
}

function helpText({ description, form, choices, initial }: Setting): string {
  const sentences = [
    description.replaceAll("`", "").replace(/\.?$/, "."),
    form === "list" ? "May be repeated." : "",
    choices.length > 0 ? `One of ${choices.join(", ")}.` : "",
    initial === undefined || form === "switch" ? "" : `(default: ${initial})`,
  ];
  return sentences.filter((sentence) => sentence !== "").join(" ");
}

function heading([section = ""]: readonly string[]): string {
  return `${section.charAt(0).toUpperCase()}${section.slice(1)}:`;
}
